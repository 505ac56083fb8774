"""The four kinds a view's column can have, and how a value becomes a cell of its column.

A column's kind is its projection's hint, or else the kind of the first value that arrives. From then on it
only widens from long to double. A value that does not fit a number or boolean column is a misfit: its cell
stays empty and the column counts it, so one word among numbers never turns the numbers into text. A text
column takes numbers and booleans in their JSON form.
"""

import json
import math
from typing import Any

from desk.stack.wire.query import BOOLEAN, DOUBLE, LONG, STRING

AFFINITY = {BOOLEAN: "INTEGER", LONG: "INTEGER", DOUBLE: "REAL", STRING: "TEXT"}
HINTS = {"text": STRING, "int": LONG, "float": DOUBLE, "bool": BOOLEAN}
I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1

Scalar = str | int | float | bool
Cell = str | int | float | None


class Misfit(ValueError):
    """A value its column cannot hold; the text says why, in words."""


def is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)  # bool is an int


def kind_of(value: Scalar) -> str:
    """The kind a lone value would give its column; Misfit when no column can hold it."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if not I64_MIN <= value <= I64_MAX:
            raise Misfit("an integer beyond 64 bits")
        return LONG
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Misfit("not a finite number")
        return DOUBLE
    return STRING


def fit(value: Scalar, kind: str, *, read_text: bool) -> tuple[str, Cell]:
    """(the column's kind from now on, the cell) of a value for a column of `kind`; Misfit when it has none.

    `read_text`: numbers and booleans written as text are read (columns with a hint, and rows put into forks).
    """
    if kind == STRING:
        try:
            return kind, text_of(value)
        except ValueError:  # Python writes no integer of thousands of digits
            raise Misfit("an integer beyond 64 bits") from None
    if read_text and isinstance(value, str):
        value = _read(value, kind)
    own = kind_of(value)
    if own == kind:
        return kind, int(value) if kind == BOOLEAN else value
    if kind == DOUBLE and own == LONG:
        return kind, float(value)
    if kind == LONG and own == DOUBLE:
        return (kind, int(value)) if read_text and value.is_integer() else (DOUBLE, value)
    raise Misfit(f"{own} value {shown(value)}")


def _read(text: str, kind: str) -> Scalar:
    if kind == BOOLEAN:
        return text == "true" if text in ("true", "false") else text
    try:
        return int(text)
    except ValueError:
        number = number_in(text)
        return text if number is None else number


def widest(first: str | None, second: str | None) -> str | None:
    """The narrowest kind that holds values of both."""
    if first is None or second is None or first == second:
        return first or second
    return DOUBLE if {first, second} == {LONG, DOUBLE} else STRING


def text_of(value: Scalar) -> str:
    """A scalar as JSON writes it; text as it is. Lone surrogates, which no file can hold, become `?`."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    return json.dumps(value)


def narrowed(text: str) -> Scalar:
    """Text as a boolean or number when that is exactly how the value is written ("007" stays text)."""
    if text in ("true", "false"):
        return text == "true"
    try:
        whole = int(text)
        if str(whole) == text and I64_MIN <= whole <= I64_MAX:
            return whole
    except ValueError:
        pass
    number = number_in(text)
    return number if number is not None and repr(number) == text else text


def number_in(text: str) -> float | None:
    """The finite number a text spells in any common form, or None."""
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def shown(value: Scalar) -> str:
    """A value for a sentence: JSON, cut to 40 characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
