"""The frames going by, and the writes among them, named so that the same write has the same name in every run.

A frame is a 256-byte header and a body; u32 at 48 counts both. Of a request, byte 176 is the operation, and u32 at
196 the command code when the operation is 2. Names hold no offsets, partitions or ids: ("send", "desk.events"),
("cas", "ledger t-1:resolve-1:refund"), ("acknowledge", "agent.sessions"). Pure.
"""

import struct
from dataclasses import dataclass, field

import cbor2

HEADER = 256
_REQUEST = 5
_NON_REPLICATED = 2
_PARTITION = 5  # bytes of an optional partition: u8 present, u32
_SEND, _STORE_OFFSET, _CREATE_GROUP, _JOIN_GROUP, _LEAVE_GROUP = 160, 161, 139, 148, 149
_KV = {
    1_000_301: "set",
    1_000_303: "delete",
    1_000_304: "delete many",
    1_000_306: "cas",
    1_000_308: "expire",
    1_000_309: "patch",
    1_000_310: "lease",
    1_000_311: "release",
    1_000_312: "cas fenced",
    1_000_313: "copy",
    1_000_314: "move",
    1_000_315: "renew lease",
}
_READS = frozenset(
    {
        *(1, 10, 12, 13, 14, 20, 100, 103, 104, 120, 123),  # ping, cluster, polls, stored offsets
        *(200, 201, 300, 301, 600, 601, 606),  # catalogue, groups
        *(1_000_000, 1_000_002, 1_000_003),  # hello; client metadata, which goes with the connection
        *(1_000_200, 1_000_201, 1_000_202, 1_000_203, 1_000_210, 1_000_211),  # queries, projections
        *(1_000_220, 1_000_221, 1_000_223),  # schemas
        *(1_000_300, 1_000_302, 1_000_305, 1_000_307),  # key-value reads
        *(1_000_403, 1_000_600, 1_000_602, *range(1_000_710, 1_000_717)),  # forks, graph, sessions
    }
)
_SESSION_OPERATIONS = frozenset([1, 3])  # register, logout: they end with the connection


@dataclass(frozen=True)
class Write:
    """operation: what is done ("send", "set", "cas", "acknowledge" …); what: the topic, or namespace and key."""

    operation: str
    what: str
    upto: int = field(default=0, compare=False)
    """Of an acknowledgement: how many records of the partition it covers. One may cover several."""
    partition: int = field(default=0, compare=False)
    """Of an acknowledgement: the partition."""
    up: bool = field(default=False, compare=False)
    """Of a message: whether a process says in it that it is up."""

    def __str__(self) -> str:
        return f"{self.operation} {self.what}"


class Frames:
    """Bytes in any pieces -> whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are whole now."""
        self._buffer += data
        whole = []
        while len(self._buffer) >= HEADER:
            (size,) = struct.unpack_from("<I", self._buffer, 48)
            if len(self._buffer) < size:
                break
            whole.append(bytes(self._buffer[:size]))
            del self._buffer[:size]
        return whole


def code_of(frame: bytes) -> str:
    """What a request frame asks for, as the protocol numbers it: "operation 160", or "code 1000300"."""
    operation = frame[176]
    if operation != _NON_REPLICATED:
        return f"operation {operation}"
    return f"code {struct.unpack_from('<I', frame, 196)[0]}"


def leaving(frame: bytes) -> bytes | None:
    """The request that undoes this one, if this is a joining of a group: the same body under another operation."""
    if frame[60] != _REQUEST or frame[176] != _JOIN_GROUP:
        return None
    return frame[:176] + bytes([_LEAVE_GROUP]) + frame[177:]


def write_of(frame: bytes) -> Write | None:
    """The write a request frame asks for, or None for a read or what ends with the connection."""
    if frame[60] != _REQUEST:
        return None
    operation, body = frame[176], frame[HEADER:]
    if operation == _NON_REPLICATED:
        (code,) = struct.unpack_from("<I", frame, 196)
        return None if code in _READS else _managed(code, body)
    if operation in _SESSION_OPERATIONS:
        return None
    if operation == _SEND:
        _, at = _identifier(body, 4)
        return Write("send", _identifier(body, at)[0], up=b"agent_up" in body)
    if operation == _STORE_OFFSET:
        _, at = _identifier(body, 1)
        _, at = _identifier(body, at)
        topic, at = _identifier(body, at)
        (partition,) = struct.unpack_from("<I", body, at + 1)
        (offset,) = struct.unpack_from("<Q", body, at + _PARTITION)
        return Write("acknowledge", topic, offset + 1, partition)
    if operation == _JOIN_GROUP:
        return Write("join group", _identifier(body, _identifier(body, _identifier(body, 0)[1])[1])[0])
    if operation == _CREATE_GROUP:
        return Write("create group", _identifier(body, _identifier(body, 0)[1])[0])
    return Write("operation", str(operation))


def _managed(code: int, body: bytes) -> Write:
    """A key-value write by its key; anything else of the managed band by its code."""
    if code not in _KV:
        return Write("command", str(code))
    request = cbor2.loads(cbor2.loads(body)["payload"])
    namespace = request["namespace"].rpartition("/")[2]
    key = request.get("key", b"").decode(errors="replace")
    return Write(_KV[code], f"{namespace} {key}")


def _identifier(body: bytes, at: int) -> tuple[str, int]:
    """An Iggy identifier (u8 kind, u8 length, value) as text, and where it ends."""
    kind, length = body[at], body[at + 1]
    value = body[at + 2 : at + 2 + length]
    text = value.decode() if kind == 2 else f"topic {int.from_bytes(value, 'little')}"
    return text, at + 2 + length
