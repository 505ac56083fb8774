"""The shape of a request: which fields it must have and of what kind, checked before anyone uses it.

A `Shape` is a table `{field name: kind}`. Unknown fields are ignored, as the wire says. A field marked
`optional(kind)` may be missing or null; null is removed, so handlers can ask `request.get(name)`.
Byte fields arrive as byte strings or as arrays of integers; both become `bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class ShapeError(ValueError):
    """A request lacks a field or has one of the wrong kind; the text names the field."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one field is checked: a value of type `exact` is right as it is, else `read(value)` gives the value
    to use or raises ValueError."""

    name: str
    read: Callable[[Any], Any]
    may_miss: bool = False
    exact: type | None = None


Shape = Mapping[str, Kind]


def optional(kind: Kind) -> Kind:
    """The same kind, but the field may be missing."""
    return Kind(kind.name, kind.read, True, kind.exact)


def check(request: Any, shape: Shape) -> dict[str, Any]:
    """The request as a dict whose listed fields have the listed kinds; ShapeError names the first that fails."""
    if type(request) is not dict:
        raise ShapeError("a request must be a map")
    for name, kind in shape.items():
        value = request.get(name)
        if type(value) is kind.exact:
            continue
        if value is None:
            if not kind.may_miss:
                raise ShapeError(f"missing field `{name}`")
            request.pop(name, None)
            continue
        try:
            fresh = kind.read(value)
        except ValueError:
            raise ShapeError(f"field `{name}` must be {kind.name}") from None
        if fresh is not value:
            request[name] = fresh
    return request


def _wrong(_value: Any) -> Any:
    raise ValueError


def _unsigned(bits: int) -> Callable[[Any], int]:
    top = 1 << bits

    def read(value: Any) -> int:
        if type(value) is not int or not 0 <= value < top:
            raise ValueError
        return value

    return read


def _data(value: Any) -> bytes:
    if type(value) is list and all(type(x) is int for x in value):
        return bytes(value)  # ValueError when an element is not a byte
    raise ValueError


def _id16(value: Any) -> bytes:
    data = value if type(value) is bytes else _data(value)
    if len(data) != 16:
        raise ValueError
    return data


TEXT = Kind("text", _wrong, exact=str)
BYTES = Kind("bytes", _data, exact=bytes)
ID16 = Kind("a 16-byte id", _id16)
BOOL = Kind("true or false", _wrong, exact=bool)
U32 = Kind("an unsigned 32-bit integer", _unsigned(32))
U64 = Kind("an unsigned 64-bit integer", _unsigned(64))
U128 = Kind("an unsigned 128-bit integer", _unsigned(128))
MAP = Kind("a map", _wrong, exact=dict)
LIST = Kind("a list", _wrong, exact=list)
ANY = Kind("present", lambda value: value)


def shaped(name: str, shape: Shape) -> Kind:
    """A field that is itself a request of the given shape."""

    def read(value: Any) -> dict[str, Any]:
        return check(value, shape)

    return Kind(name, read)


def listed(kind: Kind) -> Kind:
    """A list whose every element is of one kind."""

    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise ValueError
        return [item if type(item) is kind.exact else kind.read(item) for item in value]

    return Kind(f"a list, each item {kind.name}", read)
