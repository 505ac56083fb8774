"""What is fuzzed: functions of bytes that must return for every input; an exception is a finding.

    frames   bytes as they come off a socket, in pieces
    bodies   one body through every decoder of the wire
    cbor     one item, there and back
    records  records with hostile headers and payloads, appended to topics that every fold reads
    engine   commands with hostile bodies against a whole stack (no socket)
    queries  queries made of what queries are made of, checked against each other (queries.py)
    schemas  writer schemas made of what schemas are made of, each with a body (definitions.py)
    states   chains of state deltas on one session (states.py)

They run under atheris (python -m fuzz) and, with other inputs, in the test suite.
"""

import contextlib
import struct
from collections.abc import Callable

from desk.stack.wire import agdx, cbor, envelope, frame, iggy, messages, query, registry
from desk.stack.wire.codes import REPLICATED, Code, Refused
from desk.stack.wire.scalars import identifier
from desk.stack.wire.shape import ShapeError
from fuzz.definitions import schemas
from fuzz.queries import queries
from fuzz.states import states
from fuzz.whole import STREAM, TOPICS, Bytes, Stack, batch_of, stack

Target = Callable[[bytes], None]

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
    envelope.envelope,
    lambda body: query.checked(cbor.loads(body)),
    lambda body: registry.checked_projection(cbor.loads(body)),
    lambda body: registry.checked_binding(cbor.loads(body)),
)


def bodies(data: bytes) -> None:
    """Every decoder gives a value or its own refusal."""
    for decode in _BODIES:
        try:
            decode(data)
        except Refused as refused:
            assert refused.status
        except (iggy.MalformedBatch, ShapeError, cbor.DecodeError, query.QueryFault):
            pass


def cbor_again(data: bytes) -> None:
    """What CBOR decodes to is written and read again as the same."""
    try:
        value = cbor.loads(data)
    except cbor.DecodeError:
        return
    again = cbor.loads(cbor.dumps(value))
    assert repr(again) == repr(value)


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
    made.ask(Code.SEND, batch_of(topic, one, 1))
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
    "queries": queries,
    "schemas": schemas,
    "states": states,
}
