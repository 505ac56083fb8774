"""VSR frames: a 256-byte header, then the body. u32 at 48 counts both; no preamble, no negotiation.

    request  48 size | 60 kind 5 | 128 client id 16 bytes | 168 u64 request | 176 u8 operation
             184 u64 session | 196 u32 command code (operation NON_REPLICATED only)
    reply    48 size | 60 kind 8 | 160 client id | 176 u64 op | 184 u64 commit | 200 u64 request
             208 u8 operation | 216 u32 status
    eviction 48 size = 256 | 60 kind 13 | 128 client id | 144 u32 newest, 148 u32 oldest version | 255 reason

All other bytes are zero both ways (checksums are not verified by either side).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from desk.stack.wire.codes import (
    METADATA_OPERATIONS,
    REPLICATED,
    RESULT_SECTION,
    Eviction,
    FrameKind,
    Operation,
)

HEADER = 256
LARGEST_BEFORE_LOGIN = 4 * 1024
LARGEST = 96 * 1024 * 1024  # a managed batch carries up to 64 MiB of payloads

_SIZE = struct.Struct("<I")
_REQUEST = struct.Struct("<16s16x8xQB7xQ4xI")  # from 128
_REPLY = struct.Struct("<48xI8xB99x16sQQ8xQB7xI36x")
_EVICTION = struct.Struct("<48xI8xB67x16sII103xB")
_ACCEPTED = bytes(4)  # result section: no rejection
_REJECTED = struct.Struct("<III")
assert _REPLY.size == _EVICTION.size == HEADER


class BadFrame(ValueError):
    """The bytes are no frame, or one larger than allowed: the connection is of no use any more."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request frame. `code` is the command code, 0 for an operation nobody knows."""

    client: bytes
    number: int
    operation: int
    session: int
    code: int
    body: bytes


class Splitter:
    """Bytes in any pieces -> whole frames. The size is checked before the frame is awaited, so memory is bounded."""

    __slots__ = ("_buffer", "largest")

    def __init__(self, largest: int = LARGEST_BEFORE_LOGIN) -> None:
        self._buffer = bytearray()
        self.largest = largest

    def feed(self, data: bytes | memoryview) -> None:
        self._buffer += data

    @property
    def waiting(self) -> int:
        """Bytes that no frame was made of yet."""
        return len(self._buffer)

    def next(self) -> bytes | memoryview | None:
        """The next whole frame, None when more bytes are needed; BadFrame for a size out of bounds.

        A view where the buffer holds nothing else: a large frame is not copied once more.
        """
        buffer = self._buffer
        if len(buffer) < HEADER:
            return None
        size = _SIZE.unpack_from(buffer, 48)[0]
        if not HEADER <= size <= self.largest:
            raise BadFrame(f"a frame of {size} bytes")
        if len(buffer) < size:
            return None
        if len(buffer) == size:
            self._buffer = bytearray()
            return memoryview(buffer)
        frame = bytes(buffer[:size])
        del buffer[:size]
        return frame


def decode_request(frame: bytes | memoryview) -> Request:
    """A whole frame as a request; BadFrame when it is another kind."""
    if frame[60] != FrameKind.REQUEST:
        raise BadFrame(f"a frame of kind {frame[60]}")
    client, number, operation, session, code = _REQUEST.unpack_from(frame, 128)
    if operation != Operation.NON_REPLICATED:
        code = REPLICATED.get(operation, 0)
    return Request(client, number, operation, session, code, bytes(frame[HEADER:]))


def encode_reply(request: Request, op: int, status: int, body: bytes | Sequence[bytes] = b"") -> bytes:
    """The reply frame. `op` is the server's operation counter; a refusal carries no body.

    Refused metadata operations travel as a result section under status 0, everything else as the status.
    """
    parts = [body] if isinstance(body, bytes) else list(body)
    if request.operation in RESULT_SECTION:
        if not status:
            parts.insert(0, _ACCEPTED)
        elif request.operation in METADATA_OPERATIONS:
            parts, status = [_REJECTED.pack(1, 0, status)], 0
    if status:
        parts = []
    size = HEADER + sum(map(len, parts))
    header = _REPLY.pack(
        size, FrameKind.REPLY, request.client, op, op, request.number, request.operation, status
    )
    return b"".join((header, *parts))


def encode_eviction(client: bytes, reason: Eviction, newest: int = 0, oldest: int = 0) -> bytes:
    """Sent instead of a reply: the connection has no session. Versions only for INCOMPATIBLE."""
    return _EVICTION.pack(HEADER, FrameKind.EVICTION, client, newest, oldest, reason)


def encode_request(
    operation: int, code: int = 0, body: bytes = b"", *, client: bytes, session: int = 0, number: int = 0
) -> bytes:
    """What a client writes (for tests and benchmarks that speak without the SDK)."""
    header = bytearray(HEADER)
    _SIZE.pack_into(header, 48, HEADER + len(body))
    header[60] = FrameKind.REQUEST
    _REQUEST.pack_into(header, 128, client, number, operation, session, code)
    return bytes(header) + body


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply frame as a client reads it."""

    operation: int
    status: int
    body: bytes


def decode_reply(frame: bytes) -> Reply | Eviction:
    """What a client reads: a reply, or why it was evicted; a result section is taken off the body."""
    if frame[60] == FrameKind.EVICTION:
        return Eviction(frame[255])
    if frame[60] != FrameKind.REPLY:
        raise BadFrame(f"a frame of kind {frame[60]}")
    operation, status = struct.unpack_from("<B7xI", frame, 208)
    body = frame[HEADER:]
    if operation in RESULT_SECTION and not status:
        if body[:4] != _ACCEPTED:
            return Reply(operation, _REJECTED.unpack(body)[2], b"")
        body = body[4:]
    return Reply(operation, status, body)
