"""What is fuzzed: functions of bytes that must return for every input; an exception is a finding.

    frames   bytes as they come off a socket, in pieces
    bodies   one body through every decoder of the wire
    records  records with hostile headers and payloads, appended to topics that every fold reads
    engine   commands with hostile bodies against a whole stack (no socket)

They run under atheris (python -m fuzz) and, with other inputs, in the test suite.
"""

import asyncio
import contextlib
import itertools
import struct
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from desk.stack.broker.state import Session
from desk.stack.engine import SCHEMAS, Engine
from desk.stack.managed.band import Band
from desk.stack.store import Store
from desk.stack.wire import agdx, cbor, frame, iggy, messages
from desk.stack.wire.codes import REPLICATED, Code, Refused
from desk.stack.wire.scalars import U32, identifier, name
from desk.stack.wire.shape import ShapeError

Target = Callable[[bytes], None]

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
HEADERS = (
    "agdx.ct", "agdx.sid", "agdx.ref", "agdx.av", "agdx.inline", "agdx.idx.n", "agdx.mem.ns", "agdx.mem.user",
    "agdx.idem", "agdx.corr", "agdx.cost", "agdx.parent_conv", "agdx.root_conv", "agdx.to",
    "gen_ai.conversation.id", "gen_ai.agent.id", "gen_ai.usage.input_tokens", "anything",
)  # fmt: skip
CODES = tuple(
    sorted(
        {
            *Code,
            *REPLICATED.values(),
            *(value for key, value in vars(agdx).items() if key.isupper() and isinstance(value, int)
              and agdx.BASE <= value < 2 * agdx.BASE),
            agdx.BASE + 999,
        }
    )
)  # fmt: skip
"""Every command there is, and one nobody knows. A seed's first byte is a place in this."""


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

    @property
    def rest(self) -> bytes:
        return self._data[self._at :]


def frames(data: bytes) -> None:
    """Whatever comes, it is split into frames or ends as BadFrame; nothing is kept beyond one frame's size."""
    source = Bytes(data)
    splitter = frame.Splitter(4096)
    step = source.byte() + 1
    with contextlib.suppress(frame.BadFrame):
        rest = source.rest
        for start in range(0, len(rest), step):
            splitter.feed(rest[start : start + step])
            while (found := splitter.next()) is not None:
                request = frame.decode_request(found)
                reply = frame.encode_reply(request, 1, 0, request.body)
                assert frame.decode_reply(reply) is not None


_BODIES: tuple[Callable[[bytes], object], ...] = (
    messages.decode_login,
    messages.decode_identifier,
    messages.decode_topic,
    messages.decode_group,
    messages.decode_create_group,
    messages.decode_create_stream,
    messages.decode_create_topic,
    messages.decode_rename_stream,
    messages.decode_rename_topic,
    messages.decode_partition_count,
    messages.decode_send,
    messages.decode_poll,
    messages.decode_offset,
    lambda body: messages.decode_offset(body, stored=True, acknowledged=True),
    iggy.decode_batch,
    iggy.decode_headers,
    agdx.mutation_frame,
    agdx.read_frame,
    cbor.loads,
)


def bodies(data: bytes) -> None:
    """Every decoder gives a value or its own refusal."""
    for decode in _BODIES:
        with contextlib.suppress(Refused, iggy.MalformedBatch, ShapeError, cbor.DecodeError):
            decode(data)


def cbor_again(data: bytes) -> None:
    """What CBOR decodes to is written and read again as the same."""
    try:
        value = cbor.loads(data)
    except cbor.DecodeError:
        return
    again = cbor.loads(cbor.dumps(value))
    assert repr(again) == repr(value)


class Stack:
    """A whole stack without a socket: topics that every fold reads, a view, a schema, a session source."""

    FRESH_EVERY = 5_000  # inputs after which the data is begun anew

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._operations = itertools.count(1)
        self._inputs = 0
        self._open()

    def _open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self.store = Store.open(Path(self._folder.name), (*SCHEMAS, *Band.SCHEMAS))
        self.engine = Engine(self.store, user="iggy", host="127.0.0.1", port=1, managed=Band)
        self.session = Session(1, "127.0.0.1:1", client=bytes(16), epoch=1, user=0)
        self.engine.broker.sessions[1] = self.session
        self.ask(Code.CREATE_STREAM, name(STREAM))
        for topic in TOPICS:
            self.ask(Code.CREATE_TOPIC, identifier(STREAM) + U32.pack(2) + name(topic))
        self.ask(Code.CREATE_GROUP, identifier(STREAM) + identifier("plain") + name("g"))
        self.ask(Code.JOIN_GROUP, identifier(STREAM) + identifier("plain") + identifier("g"))
        self.control({"RegisterProjection": _PROJECTION})
        self.control({"ApplyBinding": _BINDING})
        self.control({"RegisterSchema": _SCHEMA})
        self.control({"RegisterSessionSource": {"stream": STREAM, "topics": "All"}})
        for row in (b'{"n":1,"t":"x","embedding":[1,0]}', b'{"n":2,"a":[{"b":0.5}]}', b"{}"):
            self.ask(Code.SEND, sent("views", [(row, {})]))

    def control(self, command: object) -> None:
        request = cbor.dumps({"v": 1, "timestamp_micros": 0, "command": command})
        reply = cbor.loads(self.ask(agdx.CONTROL_PUBLISH, self.mutation(request)))
        assert b"ok" in reply.get("reply", b""), reply

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

    def begin(self) -> None:
        """One more input; now and then everything is thrown away."""
        self._inputs += 1
        if not self._inputs % self.FRESH_EVERY:
            self.close()
            self._open()

    def close(self) -> None:
        self.store.close()
        self._folder.cleanup()


def sent(topic: str, records: Sequence[tuple[bytes, iggy.Headers]]) -> bytes:
    """A publish's body."""
    return _batch(topic, iggy.encode_frames(records), len(records))


def _batch(topic: str, frames: bytes, count: int) -> bytes:
    target = identifier(STREAM) + identifier(topic) + b"\2\4" + U32.pack(0) + U32.pack(count)
    header = iggy.encode_batch_header(0, 0, 0, 1, len(frames), count)
    return U32.pack(len(target)) + target + header + frames


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
_SCHEMA = {"id": 7, "source": {"kind": "json_schema", "schema": '{"type":"object","required":["n"]}'}}

_stack: list[Stack] = []


def stack() -> Stack:
    """The one stack of this process."""
    if not _stack:
        _stack.append(Stack())
    return _stack[0]


def engine(data: bytes) -> None:
    """Up to four commands: place of the code, whether to wrap, then a body of a given length each."""
    source, made = Bytes(data), stack()
    made.begin()
    for _ in range(4):
        code, wrapped = CODES[source.byte() % len(CODES)], source.byte()
        body = source.chunk()
        if wrapped % 2 and code in agdx.MUTATION_CODES:
            body = made.mutation(body)
        with contextlib.suppress(Refused):
            made.ask(code, body)
        if not source.rest:
            break
    _still_serves(made)


def records(data: bytes) -> None:
    """One record with up to three headers, on any topic that something reads."""
    source, made = Bytes(data), stack()
    made.begin()
    topic = TOPICS[source.byte() % len(TOPICS)]
    headers: dict[str, tuple[str, bytes]] = {}
    for _ in range(source.byte() % 4):
        title, kind = HEADERS[source.byte() % len(HEADERS)], iggy.KINDS[source.byte() % len(iggy.KINDS)]
        headers[title] = kind, source.take(source.byte())
    block = iggy.encode_headers(headers) + (source.take(9) if source.byte() == 255 else b"")
    payload = source.rest
    one = bytes(24) + struct.pack("<IIIIQ", 0, 0, len(block), len(payload), 0) + payload + block
    made.ask(Code.SEND, _batch(topic, one, 1))
    _still_serves(made)


def _still_serves(made: Stack) -> None:
    """Nothing is left open, and the memory of topics is what the file says."""
    assert not made.store.db.in_transaction
    with contextlib.suppress(Refused):
        made.ask(Code.TOPICS, identifier(STREAM))


TARGETS: dict[str, Target] = {
    "frames": frames,
    "bodies": bodies,
    "cbor": cbor_again,
    "records": records,
    "engine": engine,
}
