"""What a surface of the managed band is: the seam between the band and whoever serves one.

A surface (key-value, leases, memory, sessions, graph, registry, query, forks ...) is a subclass of
`Surface`, listed in `served.py`. It names its command codes by kind, and the band does the rest: frames,
operation identity, recorded outcomes, positions, barriers, batches, the `Ok`/`Err` wrapper, hello.

* A handler is a method `(self, request, context)` that returns the outcome, the value that goes under `Ok`.
* `SurfaceError(value)` sends `value` under `Err`; `CommandError(code, message)` goes bare.
* `Bare(value)` as an outcome is sent as it is, without `Ok` (hello, metadata lists, control).
* A handler of `mutations` runs inside the engine's transaction, which also records its outcome; raising
  undoes what it wrote. A handler of `plain` may return an awaitable of its outcome, unless it `writes`.
* All lasting state lives in tables (`schema`); what a surface caches it forgets in `reload()`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from desk.stack.broker.log import Log
from desk.stack.engine import Caller
from desk.stack.store import Store
from desk.stack.wire.iggy import Record
from desk.stack.wire.shape import Shape

Request = dict[str, Any]
Handler = Callable[[Any, Request, "Context"], Any]
PlainHandler = Callable[[Any, Request, "Context"], Any | Awaitable[Any]]
RawHandler = Callable[[Any, bytes, "Context"], bytes]


class SurfaceError(Exception):
    """A typed refusal; `value` is what goes under `Err`, for example `"NotFound"`."""

    def __init__(self, value: Any) -> None:
        super().__init__(str(value))
        self.value = value


class CommandError(Exception):
    """A refusal by the band itself: a result code's snake_case name and one sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Bare:
    """An outcome that is sent as it is, not under `Ok`."""

    value: Any


class Position(NamedTuple):
    """Where a mutation stands on its surface; on the wire a `MutationPosition` of partition 0."""

    generation: int
    offset: int

    def covers(self, required: Mapping[str, Any]) -> bool:
        """Has everything up to a required `MutationPosition` been applied here?"""
        return (
            required.get("topic_generation") == self.generation and required.get("offset", 0) <= self.offset
        )

    def wire(self) -> dict[str, int]:
        return {"topic_generation": self.generation, "partition": 0, "offset": self.offset}


class Context(NamedTuple):
    """What a handler may use. `now_us` is stamped once a request, so that replies agree with themselves."""

    store: Store
    log: Log
    now_us: int
    caller: Caller
    surfaces: Mapping[str, Surface]
    operation_id: int = 0  # 0 outside a mutation
    position: Position | None = None  # of this mutation, or the last one applied before this read

    def surface(self, name: str) -> Any:
        """Another surface by its name (the registry registers session sources at `sessions`), or None."""
        return self.surfaces.get(name)


class Surface:
    """Base of every surface: serves nothing, wants nothing. Override what you serve."""

    name: ClassVar[str] = ""
    schema: ClassVar[str] = ""  # CREATE TABLE IF NOT EXISTS ...
    versions: ClassVar[Mapping[str, int]] = {}  # op versions in hello, for example {"kv": 1}
    features: ClassVar[int] = 0  # feature bits in hello (desk.stack.wire.agdx)
    position: ClassVar[str] = ""  # whose frontier its mutations move: "kv", "fork", "graph" or none
    shapes: ClassVar[Mapping[int, Shape]] = {}  # what a request must look like; checked before its handler
    mutations: ClassVar[Mapping[int, Handler]] = {}
    barrier_reads: ClassVar[Mapping[int, Handler]] = {}
    plain: ClassVar[Mapping[int, PlainHandler]] = {}
    raw: ClassVar[Mapping[int, RawHandler]] = {}  # bodies that are no CBOR; the answer is sent as it is
    marker: ClassVar[bytes] = b""  # bytes that must occur in an append for `appended` to have any work
    checks_first: ClassVar[bool] = False  # its mutations refuse before they write: no savepoint around them
    floatless: ClassVar[bool] = False  # none of its outcomes holds a float
    writes: ClassVar[frozenset[int]] = frozenset()  # plain codes that need the engine's transaction
    later: ClassVar[frozenset[int]] = frozenset()  # plain codes whose outcome is awaited; no batch takes them

    def __init__(self, store: Store, log: Log) -> None:
        """Made once, when the stack opens; nothing may be read here that `reload` would not read again."""
        self.store = store
        self.log = log

    def query_block(self) -> Mapping[str, Any] | None:
        """The `query` block of the backend descriptor, from the one surface that answers queries."""
        return None

    def wants(self, stream: str, topic: str) -> bool:
        """Should records appended to this topic come to `appended`? Asked for every append: be quick."""
        return False

    def appended(
        self, stream: str, topic: str, partition: int, records: Sequence[Record], context: Context
    ) -> None:
        """Fold records; runs inside the append's transaction, before it is acknowledged."""

    def greeted(self, context: Context) -> None:
        """A connection said hello."""

    def configured(self, context: Context) -> None:
        """The registry changed: a control command was applied, inside its transaction."""

    def disconnected(self, client_id: int) -> None:
        """A connection is gone."""

    def close(self) -> None:
        """The stack ends: let go of the file."""

    def reload(self) -> None:
        """Forget everything cached and read it again from the tables (at the start, after a rollback)."""
