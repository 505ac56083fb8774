"""Pages: what a cursor remembers, and how rows become the reply's CBOR.

A cursor is opaque to clients: the sequence number and the clock the first page saw, where the next page
starts, and a digest of the query it belongs to.
"""

import base64
import binascii
import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from desk.stack.query.compile import BINARY, RESERVED, Output, Page
from desk.stack.query.kinds import BOOLEAN, DOUBLE, LONG
from desk.stack.query.request import invalid
from desk.stack.wire import cbor

_CURSOR = struct.Struct(">QQQQ8s")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page starts: after row `after` (0: none), or at position `skip`."""

    upto: int
    now_us: int
    after: int
    skip: int

    def encode(self, digest: bytes) -> str:
        packed = _CURSOR.pack(self.upto, self.now_us, self.after, self.skip, digest)
        return base64.urlsafe_b64encode(packed).decode()

    @classmethod
    def decode(cls, text: str, digest: bytes) -> "Cursor":
        """Raises SurfaceError for text that is no cursor of the query with this digest."""
        try:
            *numbers, made_for = _CURSOR.unpack(base64.b64decode(text, altchars=b"-_", validate=True))
        except (struct.error, binascii.Error, ValueError):
            raise invalid("the cursor is not one this stack gave") from None
        if made_for != digest:
            raise invalid("the cursor belongs to another query")
        return cls(*numbers)

    def page(self, limit: int) -> Page:
        return Page(limit, self.skip, self.after or None)


def digest(query: Mapping[str, Any]) -> bytes:
    """What makes two requests the same query: everything but identity, page and deadline."""
    kept = {k: v for k, v in query.items() if k not in ("execution_id", "page", "deadline_micros")}
    return hashlib.blake2b(cbor.dumps(kept), digest_size=8).digest()


def fields(columns: Sequence[Output]) -> list[dict[str, Any]]:
    """The reply's `fields`: numbered from 1, except for the protocol's own columns."""
    out = []
    for number, column in enumerate(columns, start=1):
        field: dict[str, Any] = {
            "id": RESERVED.get(column.name, number),
            "name": column.name,
            "required": False,
            "field_type": {"kind": column.kind},
        }
        if column.doc:
            field["doc"] = column.doc
        out.append(field)
    return out


def encode_rows(
    columns: Sequence[Output], rows: Sequence[Sequence[Any]], *, scored: bool = False
) -> cbor.Encoded:
    """The reply's `rows`: tuples of the columns' values, followed by a score when `scored`.

    Encoded column by column, because a column's cells have one head, and laid side by side at the end.
    """
    head = _head(0xA0, 2 if scored else 1) + b"fvalues" + _head(0x80, len(columns))
    by_column = list(zip(*rows, strict=True))
    cells = [
        _CELLS.get(c.kind, _texts)(_heads(c.kind), values)
        for c, values in zip(columns, by_column, strict=False)
    ]
    if scored and rows:
        cells.append([b"escore" + _score(value) for value in by_column[-1]])
    width = len(cells) + 1
    parts = [head] * (width * len(rows))
    for place, column in enumerate(cells, start=1):
        parts[place::width] = column
    return cbor.Encoded(_head(0x80, len(rows)) + b"".join(parts))


@lru_cache
def _heads(kind: str) -> bytes:
    """What stands before every value of a kind: a map of two, the kind, the key of the value."""
    return b"\xa2dkind" + cbor.dumps(kind) + b"evalue"


_NULL = cbor.dumps({"kind": "null"})


def _repeated(encode: Callable[[Any], bytes], values: Sequence[Any]) -> list[bytes] | None:
    """Each different value encoded once, when there are few; None when there are many."""
    different = set(values)
    if len(different) > len(values) // 2:
        return None
    known = {value: _NULL if value is None else encode(value) for value in different}
    return [known[value] for value in values]


def _longs(head: bytes, values: Sequence[int | None]) -> list[bytes]:
    two, four = head + b"\x19", head + b"\x1a"
    return _repeated(lambda value: head + _long(value), values) or [
        _NULL
        if value is None
        else two + value.to_bytes(2, "big")
        if 255 < value < 0x10000
        else four + value.to_bytes(4, "big")
        if 0xFFFF < value < 0x100000000
        else head + _long(value)
        for value in values
    ]


def _doubles(head: bytes, values: Sequence[float | None]) -> list[bytes]:
    """Always 64 bits wide; never -0.0, and null for what is no number: the client would refuse the page."""
    eight, pack = head + b"\xfb", struct.Struct(">d").pack
    return [
        eight + pack(value + 0.0) if value is not None and -math.inf < value < math.inf else _NULL
        for value in values
    ]


def _texts(head: bytes, values: Sequence[str | None]) -> list[bytes]:
    return _repeated(lambda value: head + _text(value), values) or [
        _NULL if value is None else head + _text(value) for value in values
    ]


def _booleans(head: bytes, values: Sequence[int | None]) -> list[bytes]:
    return [_NULL if value is None else head + (b"\xf5" if value else b"\xf4") for value in values]


def _binaries(head: bytes, values: Sequence[bytes | None]) -> list[bytes]:
    return [_NULL if value is None else head + _head(0x40, len(value)) + value for value in values]


_CELLS = {LONG: _longs, DOUBLE: _doubles, BOOLEAN: _booleans, BINARY: _binaries}


def _head(major: int, size: int) -> bytes:
    """A CBOR head: major type in the top three bits, and a number."""
    if size < 24:
        return bytes((major | size,))
    if size < 0x100:
        return bytes((major | 24, size))
    if size < 0x10000:
        return struct.pack(">BH", major | 25, size)
    if size < 0x100000000:
        return struct.pack(">BI", major | 26, size)
    return struct.pack(">BQ", major | 27, size)


def _long(value: int) -> bytes:
    return _head(0x00, value) if value >= 0 else _head(0x20, -1 - value)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _head(0x60, len(encoded)) + encoded


def _score(value: float) -> bytes:
    return cbor.float_bytes(struct.unpack("<f", struct.pack("<f", value))[0])
