"""One request = one transaction: append, folds, outcome, then the reply."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from desk.stack.wire.iggy import Record


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: connection number, user number (0 = root), `host:port`."""

    client_id: int
    user_id: int
    address: str


class Managed(Protocol):
    """The managed band, as the engine sees it: `Band(store: Store, log: Log)`."""

    SCHEMAS: ClassVar[Sequence[str]]
    """SQL of every table of the managed rooms (CREATE ... IF NOT EXISTS)."""
    MUTATIONS: ClassVar[frozenset[int]]
    """Command codes for which the engine opens a transaction before `handle`."""

    def handle(self, code: int, body: bytes, caller: Caller) -> bytes | Awaitable[bytes]:
        """One managed command; mutations answer at once (no awaitable: the transaction would be over)."""

    def wants(self, stream: str, topic: str) -> bool:
        """Cheap gate: no fold, then frames are not even decoded."""

    def appended(self, stream: str, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Folds, inside the append's transaction and before its acknowledgement."""

    def disconnected(self, client_id: int) -> None:
        """A connection is gone: forget its presence."""

    def reload(self) -> None:
        """A transaction failed: forget caches, read the file again."""
