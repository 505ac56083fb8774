"""What the broker's commands share: the topology, the groups, the connections, and the way to append."""

from collections.abc import Callable
from dataclasses import dataclass, field

import apsw

from desk.stack.broker import batches
from desk.stack.broker.groups import Group, Groups
from desk.stack.broker.topology import ConsumerKey, Partition, Stream, Topic, Topology
from desk.stack.store import Store
from desk.stack.wire.iggy import Batch
from desk.stack.wire.messages import ConsumerKind


@dataclass(slots=True)
class Session:
    """One connection. `number` is its own for ever; `client`, `epoch` and `user` change with every login."""

    number: int
    address: str
    client: bytes = bytes(16)
    epoch: int = 0  # 0: not logged in
    user: int | None = None
    seen: float = 0.0  # monotonic seconds of the last request


Fold = Callable[[str, str, int, batches.Stored], None]
"""Called with (stream, topic, partition, batch) after every append, inside its transaction."""


def no_fold(_stream: str, _topic: str, _partition: int, _batch: batches.Stored) -> None:
    """The fold of a stack without a managed band."""


@dataclass(slots=True)
class Broker:
    """State of the whole broker; only the event-loop thread touches it."""

    store: Store
    user: str
    host: str
    port: int
    topology: Topology
    groups: Groups
    sessions: dict[int, Session] = field(default_factory=dict)
    fold: Fold = no_fold

    @property
    def db(self) -> apsw.Connection:
        return self.store.db

    def append(self, stream: Stream, topic: Topic, partition: Partition, batch: Batch) -> int:
        """Append and fold; the base offset."""
        stored = batches.append(self.db, partition, batch)
        self.fold(stream.name, topic.name, partition.id, stored)
        return stored.base

    def group(self, topic: Topic, number: int) -> Group:
        return self.groups.get(topic.key, number, topic.numbers)

    def reload(self) -> None:
        """A transaction failed: mirror the file anew. Memberships stay, they are of the connections."""
        self.topology.load()
        self.groups.keep(
            {(topic.key, number) for _, topic in self.topology.topics() for number in topic.groups}
        )


def group_key(number: int) -> ConsumerKey:
    return (int(ConsumerKind.GROUP), number)
