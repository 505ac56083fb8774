"""Replies to queries: fields, rows, page, context.

    {fields: [{id, name, required, field_type: {kind}, doc?}], rows: [{values: [typed value], score?}],
     page: {offset?, limit, total?, has_more, next_cursor?}, context: {execution_id, engine, resolved_target,
     requested_consistency, delivered_consistency, truncated, elapsed_micros, scanned_bytes, produced_bytes,
     row_count, frontier?}}

A client checks every cell against its field and refuses the whole page when one does not match.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from desk.stack.wire import cbor
from desk.stack.wire.query import BINARY, BOOLEAN, DOUBLE, LONG, RESERVED_IDS


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a reply."""

    name: str
    kind: str
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a reply tells of how it was made. Sizes in bytes."""

    engine: Mapping[str, str]
    resource_id: bytes  # of the backend that hello announces
    elapsed_us: int
    scanned: int
    produced: int
    rows: int
    frontier: Sequence[Mapping[str, Any]]


def reply_page(asked: Mapping[str, Any], total: int | None, cursor: str | None) -> dict[str, Any]:
    """The reply's `page`; there is more exactly when there is a cursor."""
    page: dict[str, Any] = {} if asked.get("cursor") is not None else {"offset": asked.get("offset") or 0}
    page["limit"] = asked["limit"]
    if total is not None:
        page["total"] = total
    page["has_more"] = cursor is not None
    if cursor is not None:
        page["next_cursor"] = cursor
    return page


def reply_context(query: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    """The reply's `context`. A synchronous projector delivers every level of consistency."""
    level = query.get("consistency", "eventual")
    context: dict[str, Any] = {
        "execution_id": query["execution_id"],
        "engine": evidence.engine,
        "resolved_target": {
            "kind": "operational",
            "index": query["target"]["index"],
            "backend_resource_id": evidence.resource_id,
            "backend_generation": 1,
            "runtime_configuration_revision": 1,
        },
        "requested_consistency": level,
        "delivered_consistency": level,
        "truncated": False,
        "elapsed_micros": evidence.elapsed_us,
        "scanned_bytes": evidence.scanned,
        "produced_bytes": evidence.produced,
        "row_count": evidence.rows,
    }
    if evidence.frontier:
        context["frontier"] = evidence.frontier
    return context


def fields(columns: Sequence[Output]) -> list[dict[str, Any]]:
    """The reply's `fields`: numbered from 1, except for the protocol's own columns."""
    out = []
    for number, column in enumerate(columns, start=1):
        field: dict[str, Any] = {
            "id": RESERVED_IDS.get(column.name, number),
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
