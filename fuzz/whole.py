"""A whole stack without a socket, for targets that need one, and what reads an input byte by byte."""

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

from desk.stack.broker.log import Log
from desk.stack.broker.state import Session
from desk.stack.engine import SCHEMAS, Engine
from desk.stack.managed.band import Band
from desk.stack.store import Store
from desk.stack.wire import agdx, cbor, iggy
from desk.stack.wire.codes import Code
from desk.stack.wire.scalars import U32, identifier, name
from fuzz import examples

Value = TypeVar("Value")

STREAM = "s"
TOPICS = (
    "views",
    "agent.memory",
    "agent.sessions",
    "agent.control",
    "agent.heartbeats",
    "agent.dlq",
    "plain",
)


class Bytes:
    """Takes values off an input; past its end everything is zero."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        return self.take(1)[0] if self._at < len(self._data) else 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def chunk(self) -> bytes:
        """A length in two bytes, then so many."""
        return self.take(self.byte() | self.byte() << 8)

    def pick(self, values: Sequence[Value]) -> Value:
        """One of the values; the first when nothing is left."""
        return values[self.byte() % len(values)]

    @property
    def rest(self) -> bytes:
        return self._data[self._at :]


class Stack:
    """A whole stack without a socket: topics that every fold reads, a view, schemas, a session source."""

    FRESH_EVERY = 5_000  # inputs after which the data is begun anew

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._operations = itertools.count(1)
        self._inputs = 0
        self.band: Band
        self._open()

    def _open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self.store = Store.open(Path(self._folder.name), (*SCHEMAS, *Band.SCHEMAS))
        self.engine = Engine(self.store, user="iggy", host="127.0.0.1", port=1, managed=self._made)
        self.session = Session(1, "127.0.0.1:1", client=bytes(16), epoch=1, user=0)
        self.engine.broker.sessions[1] = self.session
        self.ask(Code.CREATE_STREAM, name(STREAM))
        for topic in TOPICS:
            self.ask(Code.CREATE_TOPIC, identifier(STREAM) + U32.pack(2) + name(topic))
        self.ask(Code.CREATE_GROUP, identifier(STREAM) + identifier("plain") + name("g"))
        self.ask(Code.JOIN_GROUP, identifier(STREAM) + identifier("plain") + identifier("g"))
        self.control({"RegisterProjection": _PROJECTION})
        self.control({"ApplyBinding": _BINDING})
        for number, source in examples.SOURCES.items():
            self.control({"RegisterSchema": {"id": number, "source": source}})
        self.control({"RegisterSessionSource": {"stream": STREAM, "topics": "All"}})
        self.ask(Code.SEND, sent("views", [(row, {}) for row in ROWS]))
        fork, put = (
            f"stream:{STREAM}/f",
            {"v": 1, "table": _BINDING["index"], "fork_id": f"stream:{STREAM}/f"},
        )
        self.mutate(agdx.FORK_CREATE, {"v": 1, "fork_id": fork, "kind": "continuous"})
        self.mutate(agdx.FORK_CREATE, {"v": 1, "fork_id": f"stream:{STREAM}/g", "parent": fork})
        self.mutate(
            agdx.FORK_PUT, {**put, "partition_id": 0, "offset": 1, "fields": {"n": "77", "t": "forked"}}
        )
        self.mutate(agdx.FORK_PUT, {**put, "partition_id": 0, "offset": 2, "tombstone": True})
        self.mutate(agdx.FORK_PUT, {**put, "partition_id": 9, "offset": 1, "fields": {"n": "-1", "new": "2"}})

    def _made(self, store: Store, log: Log) -> Band:
        self.band = Band(store, log)
        return self.band

    def control(self, command: object) -> None:
        request = cbor.dumps({"v": 1, "timestamp_micros": 0, "command": command})
        reply = cbor.loads(self.ask(agdx.CONTROL_PUBLISH, self.mutation(request)))
        assert b"ok" in reply.get("reply", b""), reply

    def mutate(self, code: int, request: object) -> None:
        reply = cbor.loads(self.ask(code, self.mutation(cbor.dumps(request))))
        assert "Ok" in cbor.loads(reply["reply"]), reply

    def mutation(self, payload: bytes) -> bytes:
        """A mutation frame with an identity of its own."""
        return cbor.dumps({"v": 1, "operation_id": next(self._operations), "payload": payload})

    def ask(self, code: int, body: bytes) -> bytes:
        """The reply's body; Refused is the only error a client may cause."""
        return self._loop.run_until_complete(self._ask(code, body))

    async def _ask(self, code: int, body: bytes) -> bytes:
        answer = self.engine.handle(self.session, code, body)
        if isinstance(answer, Awaitable):
            return await asyncio.wait_for(answer, 30)
        return answer if isinstance(answer, bytes) else b"".join(answer)

    def fresh_id(self) -> bytes:
        """A session that no input has written to."""
        return next(self._operations).to_bytes(16, "big")

    def begin(self) -> None:
        """One more input; now and then everything is thrown away."""
        self._inputs += 1
        if not self._inputs % self.FRESH_EVERY:
            self.close()
            self._open()

    def close(self) -> None:
        self.band.surfaces["query"].runner.close()
        self.store.close()
        self._folder.cleanup()


def sent(topic: str, records: Sequence[tuple[bytes, iggy.Headers]]) -> bytes:
    """A publish's body."""
    return batch_of(topic, iggy.encode_frames(records), len(records))


def batch_of(topic: str, frames: bytes, count: int) -> bytes:
    target = identifier(STREAM) + identifier(topic) + b"\2\4" + U32.pack(0) + U32.pack(count)
    header = iggy.encode_batch_header(0, 0, 0, 1, len(frames), count)
    return U32.pack(len(target)) + target + header + frames


ROWS = (
    b'{"n":1,"t":"x","embedding":[1,0]}',
    b'{"n":2,"a":[{"b":0.5}],"flag":true}',
    b"{}",
    *(
        b'{"n":%d,"t":"row %d","a":[{"b":%d.25}],"flag":%s}' % (n % 5, n % 7, n, (b"true", b"false")[n % 2])
        for n in range(20)
    ),
    b'{"n":9223372036854775807,"t":"","a":[{"b":-0.0}],"embedding":[0,0]}',
    b'{"n":-9223372036854775808,"t":"\xc3\xa4\xf0\x9f\x98\x80","a":[{"b":1e308}],"embedding":[-1,2]}',
    b'{"n":null,"t":"100% _like_","a":[{"b":-1e308}],"ts":5,"message_type":"x"}',
    b'{"n":"12","t":7,"flag":"no","a":[{"b":5e-324}],"ts":9223372036854775807}',
)
"""What the view of every whole stack holds: the edges of each kind, repetitions, misfits, nulls."""

_PROJECTION = {
    "id": f"stream:{STREAM}/v.v1",
    "name": "v",
    "version": 1,
    "content_type": "any",
    "extraction": {
        "fields": [
            {"name": "n", "pointer": "/n"},
            {"name": "t", "pointer": "/t", "field_type": "text"},
            {"name": "deep", "pointer": "/a/0/b"},
            {"name": "flag", "pointer": "/flag"},
            {"name": "ts", "pointer": "/ts"},
            {"name": "message_type", "pointer": "/message_type"},
        ],
        "vector_field": "/embedding",
        "inline_payload": True,
    },
    "inline_payload_default": True,
}
_BINDING = {
    "source": {"stream": STREAM, "topic": "views"},
    "allowed_projections": [_PROJECTION["id"]],
    "default_projection": _PROJECTION["id"],
    "index": f"stream:{STREAM}/views",
    "notify": True,
}

_stack: list[Stack] = []


def stack() -> Stack:
    """The one stack of this process."""
    if not _stack:
        _stack.append(Stack())
    return _stack[0]
