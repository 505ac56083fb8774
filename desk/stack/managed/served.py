"""Which surfaces the stack serves, in the order their folds run. Serving one more is one more line here."""

from desk.stack.folds.entities import Entities
from desk.stack.folds.memory import Memory
from desk.stack.managed.forks import Forks
from desk.stack.managed.graph import Graph
from desk.stack.managed.kv import KeyValue
from desk.stack.managed.leases import Leases
from desk.stack.managed.presence import Presence
from desk.stack.managed.registry import Registry
from desk.stack.managed.sessions import Sessions
from desk.stack.managed.surface import Surface
from desk.stack.query.surface import Queries

SURFACES: tuple[type[Surface], ...] = (
    Presence,
    KeyValue,
    Leases,
    Registry,
    Forks,
    Queries,
    Graph,
    Entities,
    Memory,
    Sessions,
)
