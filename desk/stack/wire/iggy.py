"""Iggy message batches: 256-byte batch header, then frames; and the records inside them.

    batch  0 u64 partition | 8 u64 base offset | 16 u64 base timestamp us | 24 u64 origin timestamp us
           32 u64 length (256 + frames) | 40 u64 checksum | 48 u32 count | 52..256 zero
    frame  0 u64 checksum | 8 u128 id | 24 u32 offset delta | 28 u32 timestamp delta | 32 u32 headers length
           36 u32 payload length | 40 u64 zero | payload | headers

Clients verify no checksum, so frames are kept as they came and batch headers are written with checksum 0.
"""

import secrets
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

BATCH_HEADER = 256
FRAME_HEADER = 48
_BATCH = struct.Struct("<QQQQQQI")
_FRAME = struct.Struct("<8x16sIIII8x")
_LENGTHS = struct.Struct("<24xI4xII8x")  # of a frame header: offset delta, headers length, payload length
_LENGTH = struct.Struct("<I")
_PADDING = bytes(BATCH_HEADER - _BATCH.size)

KINDS = (
    "raw", "string", "bool", "i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "u128", "f32", "f64",
)  # fmt: skip
_KIND_NAMES = dict(enumerate(KINDS, start=1))
_KIND_CODES = {name: code for code, name in _KIND_NAMES.items()}

Headers = Mapping[str, tuple[str, bytes]]
"""Name -> (kind, raw little-endian value); kinds are KINDS."""


class MalformedBatch(ValueError):
    """The bytes are no batch of messages."""


class Record(NamedTuple):
    """One message as it lies on the log. `timestamp` is the broker's, in microseconds.

    A tuple, for folds make one of every message.
    """

    offset: int
    timestamp: int
    id: bytes
    headers: dict[str, tuple[str, bytes]]
    payload: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What a publisher sent: `count` frames as they came, its own clock in microseconds, any user headers?"""

    count: int
    origin: int
    frames: bytes
    has_headers: bool


def decode_batch(body: bytes, at: int = 0) -> Batch:
    """A publisher's batch, from `at` to the end of `body`. Walks every frame, so bad lengths never get stored."""
    if len(body) - at < BATCH_HEADER:
        raise MalformedBatch("shorter than a batch header")
    _, _, _, origin, length, _, count = _BATCH.unpack_from(body, at)
    if length != len(body) - at or not 0 < count <= length // FRAME_HEADER:
        raise MalformedBatch("length or count does not fit")
    start = at + BATCH_HEADER
    headers = _alike(body, start, count)
    if headers is None:
        headers = _walked(body, start, count)
    return Batch(count, origin, body[start:], headers > 0)


def _alike(body: bytes, start: int, count: int) -> int | None:
    """The length of each frame's headers when all frames are of one size, as they often are; None when not.

    Byte by byte of all frames at a time: a tenth of what walking costs.
    """
    size, rest = divmod(len(body) - start, count)
    if rest or size < FRAME_HEADER:
        return None
    _, headers, payload = _LENGTHS.unpack_from(body, start)
    if FRAME_HEADER + headers + payload != size:
        return None
    offsets = struct.pack(f"<{count}I", *range(count))
    lengths = body[start + 32 : start + 40]
    if all(body[start + 24 + k :: size] == offsets[k::4] for k in range(4)) and all(
        body[start + 32 + k :: size] == lengths[k : k + 1] * count for k in range(8)
    ):
        return headers
    return None


def _walked(body: bytes, start: int, count: int) -> int:
    """The length of all frames' headers, frame after frame up to the end of the body."""
    position, all_headers, unpack = start, 0, _LENGTHS.unpack_from
    try:
        for index in range(count):
            delta, headers, payload = unpack(body, position)
            position += FRAME_HEADER + headers + payload
            all_headers += headers
            if delta != index:
                raise MalformedBatch("offsets out of order")
    except struct.error as error:
        raise MalformedBatch("cut inside a frame") from error
    if position != len(body):
        raise MalformedBatch("cut inside a frame, or bytes after the last one")
    return all_headers


def frame_ends(frames: bytes, count: int) -> list[int]:
    """Byte positions [0, end of frame 0, ..., end of the last] of frames that were checked on their way in."""
    position, ends = 0, [0]
    for _ in range(count):
        _, headers, payload = _LENGTHS.unpack_from(frames, position)
        position += FRAME_HEADER + headers + payload
        ends.append(position)
    return ends


def encode_batch_header(
    partition: int, base: int, timestamp: int, origin: int, size: int, count: int
) -> bytes:
    """The header of a batch of `count` messages in `size` bytes of frames."""
    return _BATCH.pack(partition, base, timestamp, origin, BATCH_HEADER + size, 0, count) + _PADDING


def encode_frames(records: Iterable[tuple[bytes, Headers]]) -> bytes:
    """Frames for (payload, headers) pairs, with random ids and no checksums."""
    out = bytearray()
    for index, (payload, headers) in enumerate(records):
        block = encode_headers(headers)
        out += bytes(8) + secrets.token_bytes(16)
        out += struct.pack("<IIIIQ", index, 0, len(block), len(payload), 0)
        out += payload
        out += block
    return bytes(out)


def decode_records(frames: bytes, count: int, base: int, timestamp: int, start: int = 0) -> Iterator[Record]:
    """The records of a stored batch whose offset is at least `start`. The frames were checked on the way in."""
    position = 0
    unpack = _FRAME.unpack_from
    same: dict[bytes, dict[str, tuple[str, bytes]]] = {}  # messages of a batch often have the same headers
    for _ in range(count):
        message_id, delta, timestamp_delta, header_size, payload_size = unpack(frames, position)
        middle = position + FRAME_HEADER + payload_size
        offset = base + delta
        if offset >= start:
            block = frames[middle : middle + header_size]
            headers = same.get(block)
            if headers is None:
                headers = same[block] = decode_headers(block)
            payload = frames[position + FRAME_HEADER : middle]
            yield Record(offset, timestamp + timestamp_delta, message_id, headers, payload)
        position = middle + header_size


def encode_headers(headers: Headers) -> bytes:
    """User headers (or options) as TLV pairs; unknown kinds are a KeyError of the caller's."""
    out = bytearray()
    for name, (kind, value) in headers.items():
        key = name.encode()
        out.append(_KIND_CODES["string"])
        out += _LENGTH.pack(len(key)) + key
        out.append(_KIND_CODES[kind])
        out += _LENGTH.pack(len(value)) + value
    return bytes(out)


def decode_headers(block: bytes) -> dict[str, tuple[str, bytes]]:
    """User headers from TLV pairs. A block that is cut or odd gives what could be read up to there:

    the broker stores frames as they came, so a record with strange headers must not stop its readers.
    """
    out: dict[str, tuple[str, bytes]] = {}
    at, size = 0, len(block)
    while size - at >= 10:
        length = _LENGTH.unpack_from(block, at + 1)[0]
        value_at = at + 5 + length
        if size - value_at < 5:
            break
        key = block[at + 5 : value_at]
        value_length = _LENGTH.unpack_from(block, value_at + 1)[0]
        end = value_at + 5 + value_length
        if end > size:
            break
        kind = _KIND_NAMES.get(block[value_at], "raw")
        out[key.decode("utf-8", "replace")] = (kind, block[value_at + 5 : end])
        at = end
    return out
