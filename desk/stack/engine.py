"""One request = one transaction: append, folds, outcome, then the reply."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import apsw

from desk.stack.broker import catalog, membership, messages, retention, system, topology
from desk.stack.broker.batches import Stored
from desk.stack.broker.groups import Groups
from desk.stack.broker.log import Log
from desk.stack.broker.ports import BrokerLog
from desk.stack.broker.state import Broker, Session
from desk.stack.store import FILE_ERRORS, Store, StoreError, explain
from desk.stack.wire.codes import AGDX, Refused, Status
from desk.stack.wire.iggy import Record, decode_records

SCHEMAS = (topology.SCHEMA,)

Body = bytes | Sequence[bytes]
Answer = TypeVar("Answer")
_READS = {**system.READS, **catalog.READS, **messages.READS, **membership.READS}
_WRITES = {**catalog.WRITES, **messages.WRITES, **membership.WRITES}


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

    def wants(self, stream: str, topic: str, frames: bytes) -> bool:
        """Cheap gate: no fold, then frames are not even decoded. A fold may look for its bytes in them."""

    def appended(self, stream: str, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Folds, inside the append's transaction and before its acknowledgement."""

    def disconnected(self, client_id: int) -> None:
        """A connection is gone: forget its presence."""

    def reload(self) -> None:
        """A transaction failed: forget caches, read the file again."""

    def close(self) -> None:
        """The stack ends: let go of the file."""


class Broken(SystemExit):
    """Memory and file cannot be brought together any more. A SystemExit, so that no event loop swallows it."""


class Engine:
    """Answers requests of logged-in sessions. Memory changes only together with a committed transaction."""

    def __init__(
        self,
        store: Store,
        *,
        user: str,
        host: str,
        port: int,
        managed: Callable[[Store, Log], Managed] | None,
    ) -> None:
        self.store = store
        with store.transaction():
            boots = store.meta("boots") + 1
            store.set_meta("boots", boots)
            store.set_meta("made", store.meta("made") or topology.now())
        # session numbers and group generations grow over restarts without a write for each
        self.op = boots << 32
        self.broker = Broker(store, user, host, port, topology.Topology(store), Groups(boots << 32))
        self.managed: Managed | None = None
        if managed is not None:
            with store.transaction():
                self.managed = managed(store, BrokerLog(self.broker))
            self.broker.fold = self._fold

    def handle(self, session: Session, code: int, body: bytes) -> Body | Awaitable[bytes]:
        """The reply's body; raises Refused with Iggy's status. Any other exception has left nothing behind."""
        if code >= AGDX:
            return self._managed(session, code, body)
        if write := _WRITES.get(code):
            return self._change(write, self.broker, session, body)
        if read := _READS.get(code):
            # a poll that commits opens a transaction of its own
            try:
                return read(self.broker, session, body)
            except Refused:
                raise
            except FILE_ERRORS as error:
                raise explain(error, self.store.folder) from error
            except Exception:
                self.reload()
                raise
        raise Refused(Status.INVALID_COMMAND)

    def _managed(self, session: Session, code: int, body: bytes) -> bytes | Awaitable[bytes]:
        if self.managed is None:
            raise Refused(Status.INVALID_COMMAND)
        caller = Caller(session.number, session.user or 0, session.address)
        if code in self.managed.MUTATIONS:
            return self._change(self.managed.handle, code, body, caller)
        return self._look(self.managed.handle, code, body, caller)

    def _look(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call `work`, which reads the file outside a transaction; what is wrong with the file is a StoreError."""
        try:
            return work(*arguments)
        except FILE_ERRORS as error:
            raise explain(error, self.store.folder) from error

    def _fold(self, stream: str, topic: str, partition: int, batch: Stored) -> None:
        managed = self.managed
        # what a fold looks for lies in user headers; where there are none it need not look
        if managed is None or not managed.wants(stream, topic, batch.frames if batch.has_headers else b""):
            return
        records = list(decode_records(batch.frames, batch.count, batch.base, batch.timestamp))
        managed.appended(stream, topic, partition, records)

    def _change(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call `work` in a transaction; when that fails memory follows the file back."""
        before = self.store.db.total_changes()
        try:
            with self.store.transaction():
                return work(*arguments)
        except Refused:
            if self.store.db.total_changes() != before:
                self.reload()
            raise
        except BaseException:
            self.reload()
            raise

    def reload(self) -> None:
        """A transaction failed after memory had followed it: read everything again from the file.

        When even that fails the process ends: the file is whole, and a new process starts from it.
        """
        try:
            self.broker.reload()
            if self.managed is not None:
                self.managed.reload()
        except (apsw.Error, StoreError) as error:
            raise Broken(str(error)) from error

    def close(self) -> None:
        """No more requests: whoever reads the file beside the writer lets go of it."""
        if self.managed is not None:
            self.managed.close()

    def leave(self, session: Session) -> None:
        """Logout, eviction or a new login: the session's memberships end."""
        if session.epoch:
            self.op += 1
            self.broker.groups.drop_client(session.client)
        session.epoch, session.user = 0, None

    def disconnected(self, session: Session) -> None:
        self.leave(session)
        self.broker.sessions.pop(session.number, None)
        if self.managed is not None:
            self.managed.disconnected(session.number)

    def sweep(self, now: float) -> None:
        """What time does: hand-offs that waited too long, records past their topic's expiry or size."""
        self.broker.groups.expire_handoffs(now)
        topics = (topic for _, topic in self.broker.topology.topics())
        due = self._look(retention.due, self.store.db, topics)
        if due:
            self._change(retention.sweep, self.store.db, due)
