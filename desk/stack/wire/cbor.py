"""CBOR as the managed band writes it: insertion order, definite lengths, the shortest lossless float.

Everything else is cbor2's own. Decoding takes exactly one item and refuses what the band never sends
(tags other than big integers, repeated keys, odd keys), so that hostile bytes end as one DecodeError.
"""

import io
import math
import struct
from typing import Any

import cbor2

MAX_DEPTH = 256  # nested containers; a filter 64 deep needs about 200
# every tag cbor2 decodes by itself, but for 2 and 3 (big integers)
_FORBIDDEN_TAGS = (
    0,
    1,
    4,
    5,
    25,
    28,
    29,
    30,
    35,
    36,
    37,
    52,
    54,
    100,
    256,
    258,
    260,
    261,
    1004,
    43000,
    55799,
)


class Encoded(bytes):
    """One CBOR item that is encoded already (by another thread, say); `dumps` copies it as it is."""


class DecodeError(ValueError):
    """The bytes are not exactly one CBOR item of the band's kind."""


def dumps(value: Any) -> bytes:
    """Encode plain values (None, bool, int, float, str, bytes, list, tuple, dict)."""
    return cbor2.dumps(value, encoders=_ENCODERS)


def dumps_floatless(value: Any) -> bytes:
    """Encode plain values among which there is no float: the same bytes in half the time."""
    return cbor2.dumps(value)


def loads(data: bytes) -> Any:
    """Decode exactly one item; DecodeError otherwise."""
    source = io.BytesIO(data)
    try:
        value = cbor2.load(
            source,
            max_depth=MAX_DEPTH,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
            semantic_decoders=_SEMANTIC,
            tag_hook=_refuse,
        )
    except (cbor2.CBORDecodeError, ValueError, OverflowError, RecursionError) as error:
        raise DecodeError(str(error)) from None
    if source.tell() != len(data):
        raise DecodeError(f"{len(data) - source.tell()} trailing byte(s) after the CBOR value")
    return value


def _shortest_float(encoder: cbor2.CBOREncoder, value: float) -> None:
    encoder.write(float_bytes(value))


def byte_head(size: int) -> bytes:
    """What goes before the bytes of a byte string of that size."""
    if size < 24:
        return bytes((0x40 | size,))
    for lead, width in ((0x58, 1), (0x59, 2), (0x5A, 4)):
        if size < 1 << 8 * width:
            return bytes((lead,)) + size.to_bytes(width, "big")
    return b"\x5b" + size.to_bytes(8, "big")


def bytes_at(data: bytes, at: int) -> slice | None:
    """Where the content of the byte string is whose head is at `at`; None when none is there, or not whole."""
    lead = data[at] if at < len(data) else 0
    if 0x40 <= lead < 0x58:
        start, size = at + 1, lead - 0x40
    elif 0x58 <= lead <= 0x5B:
        start = at + 1 + (1 << lead - 0x58)
        size = int.from_bytes(data[at + 1 : start], "big")
    else:
        return None
    return slice(start, start + size) if start + size <= len(data) else None


def float_bytes(value: float) -> bytes:
    """A float in f16, f32 or f64, whichever is the narrowest that loses nothing."""
    if math.isnan(value):
        return b"\xf9\x7e\x00"
    for lead, form in ((b"\xf9", ">e"), (b"\xfa", ">f")):
        try:
            narrow = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, narrow)[0] == value:
            return lead + narrow
    return b"\xfb" + struct.pack(">d", value)


def _refuse(*_args: Any) -> Any:
    raise DecodeError("a CBOR tag the band does not use")


_ENCODERS = {float: _shortest_float, Encoded: lambda encoder, item: encoder.write(item)}
_SEMANTIC = dict.fromkeys(_FORBIDDEN_TAGS, _refuse)
