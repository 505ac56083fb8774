"""An engine in the test's own process, and requests to it as a client would send them."""

import contextlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from desk.stack.broker.log import Log
from desk.stack.broker.state import Session
from desk.stack.engine import SCHEMAS, Engine, Managed
from desk.stack.store import Store
from desk.stack.wire import iggy
from desk.stack.wire.codes import Code
from desk.stack.wire.scalars import U32, U64, Identifier, Reader, identifier, name


@contextlib.contextmanager
def engine(folder: Path, managed: Callable[[Store, Log], Managed] | None = None) -> Iterator[Engine]:
    """An engine over `folder`, closed afterwards; open it again to see what a restart sees."""
    store = Store.open(folder, SCHEMAS)
    try:
        yield Engine(store, user="iggy", host="127.0.0.1", port=1, managed=managed)
    finally:
        store.close()


class Client:
    """A logged-in session that speaks to the engine without a socket."""

    def __init__(self, engine: Engine, number: int = 1) -> None:
        self.engine = engine
        self.session = Session(number, f"127.0.0.1:{number}", client=bytes((number,)) * 16, epoch=1, user=0)
        engine.broker.sessions[number] = self.session

    def ask(self, code: Code, body: bytes = b"") -> bytes:
        answer = self.engine.handle(self.session, code, body)
        return answer if isinstance(answer, bytes) else b"".join(answer)

    def stream(self, title: str = "s") -> None:
        self.ask(Code.CREATE_STREAM, name(title))

    def topic(self, title: str = "t", partitions: int = 1, options: iggy.Headers | None = None) -> None:
        body = identifier("s") + U32.pack(partitions) + name(title) + iggy.encode_headers(options or {})
        self.ask(Code.CREATE_TOPIC, body)

    def send(self, *payloads: bytes, topic: Identifier = "t", partition: int = 0, stream: str = "s") -> int:
        """The base offset."""
        reply = self.ask(Code.SEND, send_body(*payloads, topic=topic, partition=partition, stream=stream))
        return U64.unpack_from(reply, 16)[0]

    def poll(self, **wanted) -> list[iggy.Record]:
        return polled(self.ask(Code.POLL, poll_body(**wanted)))

    def group(self, code: Code, group: str = "g", topic: str = "t") -> bytes:
        return self.ask(
            code,
            where(topic) + (name(group) if code is Code.CREATE_GROUP else identifier(group)),
        )

    def assignment(self) -> tuple[int, list[int]] | None:
        reply = Reader(self.group(Code.SYNC_GROUP))
        return (reply.u64(), [reply.u32() for _ in range(reply.u32())]) if reply.body else None

    def store(self, offset: int, **wanted) -> None:
        self.ask(Code.STORE_OFFSET, offset_body(**wanted) + U64.pack(offset) + b"\0")

    def offset(self, **wanted) -> int | None:
        reply = self.ask(Code.OFFSET, offset_body(**wanted))
        return U64.unpack_from(reply, 12)[0] if reply else None


def where(topic: Identifier = "t", stream: Identifier = "s") -> bytes:
    return identifier(stream) + identifier(topic)


def send_body(*payloads: bytes, topic: Identifier = "t", partition: int = 0, stream: str = "s") -> bytes:
    target = where(topic, stream) + b"\2\4" + U32.pack(partition) + U32.pack(len(payloads))
    frames = iggy.encode_frames((payload, {}) for payload in payloads)
    header = iggy.encode_batch_header(0, 0, 0, 1, len(frames), len(payloads))
    return U32.pack(len(target)) + target + header + frames


def poll_body(
    kind: int = 1,
    consumer: Identifier = "reader",
    topic: Identifier = "t",
    partition: int | None = 0,
    strategy: int = 1,
    value: int = 0,
    count: int = 1_000,
    commit: bool = False,
) -> bytes:
    tail = struct.pack("<BQIB", strategy, value, count, commit)
    return offset_body(kind, consumer, topic, partition) + tail


def offset_body(
    kind: int = 1, consumer: Identifier = "reader", topic: Identifier = "t", partition: int | None = 0
) -> bytes:
    present = bytes(5) if partition is None else b"\1" + U32.pack(partition)
    return bytes((kind,)) + identifier(consumer) + where(topic) + present


def polled(reply: bytes) -> list[iggy.Record]:
    """The records of a poll reply, read strictly: batch headers must add up."""
    count = U32.unpack_from(reply, 12)[0]
    at, found = 16, []
    while at < len(reply):
        _, base, timestamp, _, length, _, messages = struct.unpack_from("<QQQQQQI", reply, at)
        assert reply[at + 52 : at + 256] == bytes(204)
        frames = reply[at + 256 : at + length]
        found += iggy.decode_records(frames, messages, base, timestamp)
        at += length
    assert (at, len(found)) == (len(reply), count)
    return found
