"""Pages: what a cursor remembers, and how rows become the reply's CBOR.

A cursor is opaque to clients: the sequence number and the clock the first page saw, where the next page
starts, and a digest of the query it belongs to.
"""

import base64
import binascii
import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desk.stack.query.compile import BINARY, RESERVED, Output, Page
from desk.stack.query.kinds import BOOLEAN, DOUBLE, LONG
from desk.stack.query.request import invalid
from desk.stack.wire import cbor

_CURSOR = struct.Struct(">QQQQ8s")
_KEPT_CELLS = 4_096  # encoded cells remembered for a column of one page


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

    Column by column, because a column's values repeat and have one head.
    """
    if not rows:
        return cbor.Encoded(cbor.dumps([]))
    by_column = list(zip(*rows, strict=True))
    cells = [
        [encode[value] for value in values]
        for encode, values in zip((_Cells(column.kind) for column in columns), by_column, strict=False)
    ]
    if scored:
        head, tail = _head(0xA0, 2) + b"fvalues", [b"escore" + _score(value) for value in by_column[-1]]
        cells.append(tail)
    else:
        head = _head(0xA0, 1) + b"fvalues"
    head += _head(0x80, len(columns))
    out = [_head(0x80, len(rows))]
    for row in zip(*cells, strict=True):
        out.append(head)
        out.extend(row)
    return cbor.Encoded(b"".join(out))


class _Cells(dict[Any, bytes]):
    """Encoded typed values of one column, by value."""

    def __init__(self, kind: str) -> None:
        self._head = b"\xa2dkind" + cbor.dumps(kind) + b"evalue"
        self._content = {LONG: _long, DOUBLE: _double, BOOLEAN: _boolean, BINARY: _binary}.get(kind, _text)
        self[None] = _NULL

    def __missing__(self, value: Any) -> bytes:
        content = self._content(value)
        encoded = self._head + content if content else _NULL
        if len(self) < _KEPT_CELLS:
            self[value] = encoded
        return encoded


_NULL = cbor.dumps({"kind": "null"})


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


def _double(value: float) -> bytes:
    """Always 64 bits wide; never -0.0, and nothing for what is no number: the client would refuse the page."""
    return b"\xfb" + struct.pack(">d", value + 0.0) if math.isfinite(value) else b""


def _boolean(value: int) -> bytes:
    return b"\xf5" if value else b"\xf4"


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _head(0x60, len(encoded)) + encoded


def _binary(value: bytes) -> bytes:
    return _head(0x40, len(value)) + value


def _score(value: float) -> bytes:
    return cbor.float_bytes(struct.unpack("<f", struct.pack("<f", value))[0])
