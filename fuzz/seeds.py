"""Inputs to begin with: what clients send in good faith, in the form that the targets read."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from desk.stack.wire import agdx, cbor, frame, iggy
from desk.stack.wire.codes import PROTOCOL_VERSION, Code
from desk.stack.wire.scalars import U32, U64, identifier, name
from fuzz import examples
from fuzz.states import record
from fuzz.targets import CODES, HEADERS
from fuzz.whole import STREAM, TOPICS, sent

_WHERE = identifier(STREAM) + identifier("plain")
_GROUP = _WHERE + identifier("g")
_PLACE = b"\1" + identifier("reader") + _WHERE + b"\1" + U32.pack(0)
_ONE = iggy.encode_frames([(b'{"n":1,"t":"x","a":[{"b":2}]}', {"agdx.ct": ("u8", b"\1")})])
_BATCH = iggy.encode_batch_header(0, 0, 0, 1, len(_ONE), 1) + _ONE
_TARGET = _WHERE + b"\2\4" + U32.pack(0) + U32.pack(1)
_SEND = U32.pack(len(_TARGET)) + _TARGET + _BATCH
_LOGIN = U32.pack(PROTOCOL_VERSION) + name("s") + name("0") + name("u") + name("p") + U32.pack(0)

BODIES: Mapping[int, bytes] = {
    Code.POLL: _PLACE + b"\1" + U64.pack(0) + U32.pack(10) + b"\1",
    Code.SEND: _SEND,
    Code.OFFSET: _PLACE,
    Code.STORE_OFFSET: _PLACE + U64.pack(0) + b"\0",
    Code.DELETE_OFFSET: _PLACE + b"\0",
    Code.STREAM: identifier(STREAM),
    Code.CREATE_STREAM: name("other"),
    Code.UPDATE_STREAM: identifier("other") + name("third"),
    Code.TOPIC: _WHERE,
    Code.TOPICS: identifier(STREAM),
    Code.CREATE_TOPIC: identifier(STREAM) + U32.pack(1) + name("t") + iggy.encode_headers({"message_expiry": ("u64", U64.pack(5))}),
    Code.UPDATE_TOPIC: _WHERE + name("plainer"),
    Code.PURGE_TOPIC: _WHERE,
    Code.CREATE_PARTITIONS: _WHERE + U32.pack(1),
    Code.DELETE_PARTITIONS: _WHERE + U32.pack(1),
    Code.GROUP: _GROUP,
    Code.GROUPS: _WHERE,
    Code.CREATE_GROUP: _WHERE + name("h"),
    Code.JOIN_GROUP: _GROUP,
    Code.SYNC_GROUP: _GROUP,
    Code.LEAVE_GROUP: _GROUP,
    Code.CLIENT: U32.pack(1),
    Code.USER: identifier("iggy"),
}  # fmt: skip

# a golden file's name begins with what it is
_GOLDEN = {
    "kv_": range(agdx.KV_GET, agdx.KV_LEASE_RENEW + 1),
    "fork_": range(agdx.FORK_CREATE, agdx.FORK_PUT + 1),
    "query_": range(agdx.QUERY, agdx.QUERY_STATUS + 1),
    "graph_": range(agdx.GRAPH_QUERY, agdx.GRAPH_NEIGHBORS + 1),
    "session_": range(agdx.SESSION_GET, agdx.SESSION_CHANGES + 1),
    "control_": (agdx.CONTROL_PUBLISH,),
    "batch_": (agdx.BATCH,),
    "client_": (agdx.LIST_CLIENT_METADATA,),
    "register_": (agdx.REGISTER_SCHEMA,),
    "decode_": (agdx.DECODE_RECORD,),
}


_VIEW = {"kind": "operational", "index": f"stream:{STREAM}/views"}


def _queries() -> Iterator[dict[str, object]]:
    """Queries of the fuzzed view that never run out of time, one for every part a query may have."""
    base = {
        "execution_id": bytes(15) + b"\1",
        "target": _VIEW,
        "deadline_micros": 1 << 62,
        "page": {"limit": 10, "offset": 0},
    }
    one, text = {"kind": "long", "value": 1}, {"kind": "string", "value": "x"}
    pred = {"pred": {"field": "n", "op": "gte", "value": one}}
    contains = {"pred": {"field": "t", "op": "contains", "value": text}}
    among = {"pred": {"field": "n", "op": "in", "value": {"kind": "list", "value": [one, text]}}}
    count = {"func": "count", "alias": "count"}
    rank = {"func": "percentile", "field": "n", "arg": 0.5, "alias": "p"}
    for number in _numbers():
        for op in ("eq", "lt", "contains"):
            yield {**base, "filter": {"pred": {"field": "n", "op": op, "value": number}}}
    for parts in (
        {},
        {"filter": {"all": [pred, {"any": [contains, {"not": among}]}]}},
        {"by_key": [{"field": "n", "value": one}], "message_type": "x", "time_range": [0, 1 << 60]},
        {"aggregate": {"group_by": ["t"], "funcs": [count, rank]}, "having": pred},
        {"aggregate": {"funcs": [count], "window": {"field": "n", "every_micros": 5}}},
        {"order": [{"field": "n", "dir": "desc"}], "select": {"fields": ["n"], "payload": True}},
        {"distinct": True, "select": {"fields": ["t"]}, "page": {"limit": 3, "want_total": True}},
        {"vector": {"field": "embedding", "embedding": [1.0, 2.0], "top_k": 3}},
        {"fork": f"stream:{STREAM}/f", "consistency": "strong"},
    ):
        yield {**base, **parts}


_DECIMALS = ((b"\x0f", 1), (b"\x7f" * 16, 38), (b"\x80" + bytes(15), 0), (b"\x01", -999_990), (bytes(17), 0))
_INTEGERS = (2**63 - 1, -(2**63), 2**63, 10**5000)


def _numbers() -> Iterator[dict[str, object]]:
    """Typed values that are decimals or integers, of every scale and size, some beyond what the protocol has."""
    for unscaled, scale in _DECIMALS:
        yield {"kind": "decimal", "value": {"unscaled": unscaled, "scale": scale}}
    yield from ({"kind": "long", "value": value} for value in _INTEGERS)


_GROW = {"op": "copy", "from": "/a", "path": "/a/-"}
_PATCHES = (
    [{"op": "add", "path": "/a", "value": [0]}],
    [{"op": "add", "path": "/a/-", "value": 2**70}, {"op": "test", "path": "/a/0", "value": 0}],
    [_GROW] * 12,
    [_GROW] * 24,
    [{"op": "copy", "from": "", "path": "/b"}] * 200,
    [{"op": "move", "from": "/b", "path": "/c"}, {"op": "remove", "path": "/c"}],
)


def _states() -> Iterator[bytes]:
    """Publishes that are chains of state deltas, as the engine reads them; the last begins with a snapshot."""
    chain = [
        {"base_revision": base, "patch": patch, "op_id": f"{base}"} for base, patch in enumerate(_PATCHES)
    ]
    yield sent("agent.sessions", [record(bytes(15) + b"\5", body) for body in chain])
    first = record(bytes(15) + b"\6", {"base_revision": 3, "document": {"a": [10**400]}}, snapshot=True)
    later = [record(bytes(15) + b"\6", {**body, "base_revision": base}) for base, body in enumerate(chain, 3)]
    yield sent("agent.sessions", [first, *later])


def _of_today(code: int, body: bytes) -> bytes:
    """A golden query's deadline is over and its view is not there: as if it were sent now, to ours."""
    if code != agdx.QUERY:
        return body
    request = cbor.loads(body)
    if type(request) is dict and type(request.get("query")) is dict:
        request["query"] |= {"deadline_micros": 1 << 62, "target": _VIEW}
    return cbor.dumps(request)


def command(code: int, body: bytes, *, wrapped: bool = False) -> bytes:
    """One command as the engine target reads it."""
    return bytes((CODES.index(code), wrapped, len(body) & 255, len(body) >> 8 & 255)) + body


def _schemad(number: int, body: bytes) -> bytes:
    """A record of the bound topic with the type and schema it is written in, as the records target reads it."""
    named = (
        ("agdx.ct", "u8", bytes((examples.CONTENT_TYPES[number],))),
        ("agdx.sid", "u32", U32.pack(number)),
    )
    headers = b"".join(
        bytes((HEADERS.index(title), iggy.KINDS.index(kind), len(value))) + value
        for title, kind, value in named
    )
    return bytes((TOPICS.index("views"), len(named))) + headers + b"\0" + body


def seeds(target: str, golden: Path | None) -> Iterator[bytes]:
    """`golden` is the folder of the wire contract's fixtures, when there is one."""
    fixtures = sorted(golden.glob("*.bin")) if golden else []
    match target:
        case "frames":
            for code, body in BODIES.items():
                yield b"\x40" + frame.encode_request(2, code, body, client=bytes(16), session=1)
        case "bodies" | "cbor":
            yield _LOGIN
            yield from BODIES.values()
            yield from (path.read_bytes() for path in fixtures)
        case "records":
            for place in range(len(TOPICS)):
                for header in range(len(HEADERS)):
                    yield bytes((place, 1, header, 1, 1)) + b"1" + b"\0" + b'{"n":1,"embedding":[1,2]}'
                for path in fixtures:
                    if path.name.startswith(("agent_", "memory_", "state_", "session_")):
                        yield (
                            bytes((place, 1, HEADERS.index("agdx.av"), 1, 1))
                            + b"1"
                            + b"\0"
                            + path.read_bytes()
                        )
            for number, bodies in examples.bodies().items():
                for body in bodies:
                    yield _schemad(number, body)
        case "queries":
            for flag in range(12):  # one for every part a query may have, and some with several
                for parts in (1 << flag, 1 << flag | 1, 0x810 | 1 << flag):
                    low, high = parts & 255, parts >> 8
                    for tail in (bytes(range(40)), bytes(range(100, 0, -3))):
                        yield bytes((low, low, high, high)) + tail
            for low in (1, 3):  # a filter, a key: numbers of any scale and size in it
                for choice, size in ((0xFD, 1), (0xFE, 16), (0xFF, 19)):
                    for scale in range(12):
                        number = bytes((choice, size)) + b"\x7f" * size + bytes((1, scale))
                        yield bytes((low, low, 0, 0)) + bytes((7, 0, 0, 0)) + number + bytes(8)
        case "schemas":
            for form in range(3):
                for first in range(20):
                    yield bytes((form, first)) + bytes(range(40))
                    yield bytes((form, first)) + bytes(range(200, 0, -3))
            for number, bodies in examples.bodies().items():
                source = examples.SOURCES[number]
                kind = ("avro", "json_schema", "protobuf").index(source["kind"])
                text = source.get("descriptor_set") or source["schema"].encode()
                for body in bodies:
                    yield bytes((3, kind, len(text) & 255, len(text) >> 8)) + text + body
        case "states":
            for operation in range(7):
                for path in range(18):
                    yield (
                        bytes((3, 0, 1, 1)) + bytes((0, 0, 1, 1, 1, 13, 0)) + bytes((operation, path, 1)) * 8
                    )
            for times in range(9):  # an array that is copied into itself, a document that is put into itself
                for source, target in ((1, 3), (0, 2)):
                    yield (
                        bytes((2, 0, 1, 1, 0, 1, 1, 13, 0, 0, 1, 0))
                        + bytes((4, target, source, times, 0, 1)) * 6
                    )
        case "engine":
            for code, body in BODIES.items():
                yield command(code, body)
            for path in fixtures:
                for code in next(
                    (codes for start, codes in _GOLDEN.items() if path.name.startswith(start)), ()
                ):
                    yield command(code, _of_today(code, path.read_bytes()), wrapped=True)
            yield from (command(agdx.QUERY, cbor.dumps({"v": 1, "query": query})) for query in _queries())
            yield from (command(Code.SEND, body) for body in _states())
            for number, bodies in examples.bodies().items():
                definition = cbor.dumps({"v": 1, "source": examples.SOURCES[number]})
                yield command(agdx.REGISTER_SCHEMA, definition, wrapped=True)
                for body in bodies:
                    yield command(agdx.DECODE_RECORD, cbor.dumps({"v": 1, "id": number, "payload": body}))
            empty = cbor.dumps({"v": 1})
            yield from (command(code, empty, wrapped=True) for code in CODES)
