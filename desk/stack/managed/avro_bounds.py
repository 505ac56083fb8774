"""What an Avro body holds, walked before it is decoded: bounded in depth, values and bytes.

The reader of fastavro follows a body as deep and as long as it says: a list of 10^12 nulls is seven bytes.
The walk builds nothing and stops at a bound, or where the schema does not explain the bytes.
"""

from collections.abc import Callable, Mapping
from typing import Any

MAX_LEVELS = 100  # containers in containers, as Protobuf has it
MAX_VALUES = 1 << 17  # a longer embedding than any that is served, about 0.1 s
MAX_DECIMAL_BYTES = 256  # 616 digits

_SIZED = {"boolean": 1, "float": 4, "double": 8}
_MAX_VARINT_BYTES = 10


class OutOfBounds(ValueError):
    """A body that goes beyond a bound; the text says which."""


def names_in(schema: Any) -> dict[str, Mapping[str, Any]]:
    """The named types of a schema that fastavro has parsed, by their full names."""
    found: dict[str, Mapping[str, Any]] = {}
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            if "name" in node and "type" in node:
                found[node["name"]] = node
            waiting.extend(field["type"] for field in node.get("fields", ()))
            waiting.extend(node[part] for part in ("type", "items", "values") if part in node)
    return found


class Walk:
    """One walk over one body."""

    def __init__(self, names: Mapping[str, Mapping[str, Any]], body: bytes) -> None:
        self._names = names
        self._body = body
        self._at = 0
        self._left = MAX_VALUES

    def over(self, schema: Any) -> None:
        """OutOfBounds, or ValueError where the body does not start with a value of the schema."""
        self._value(schema, MAX_LEVELS)

    def _value(self, schema: Any, levels: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise OutOfBounds(f"the body holds more than {MAX_VALUES} values")
        if not levels:
            raise OutOfBounds(f"the body is nested deeper than {MAX_LEVELS} levels")
        if isinstance(schema, list):
            self._value(schema[self._choice(len(schema))], levels - 1)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in _SIZED:
            self._skip(_SIZED[kind])
        elif kind in ("int", "long"):
            self._number()
        elif kind in ("string", "bytes"):
            self._skip(self._number(), decimal=_is_decimal(schema))
        elif kind == "fixed":
            self._skip(schema["size"], decimal=_is_decimal(schema))
        elif kind == "enum":
            self._choice(len(schema["symbols"]))
        elif kind in ("record", "error"):
            for field in schema["fields"]:
                self._value(field["type"], levels - 1)
        elif kind == "array":
            self._blocks(lambda: self._value(schema["items"], levels - 1))
        elif kind == "map":
            self._blocks(lambda: self._entry(schema["values"], levels - 1))
        elif kind != "null":
            self._value(self._names[kind], levels - 1)

    def _entry(self, values: Any, levels: int) -> None:
        self._skip(self._number())
        self._value(values, levels)

    def _blocks(self, item: Callable[[], None]) -> None:
        while count := self._number():
            if count < 0:
                self._number()  # the size of the block, for those who skip it
            for _ in range(abs(count)):
                item()

    def _choice(self, choices: int) -> int:
        index = self._number()
        if not 0 <= index < choices:
            raise ValueError("a choice the schema does not have")
        return index

    def _skip(self, size: int, *, decimal: bool = False) -> None:
        if not 0 <= size <= len(self._body) - self._at:
            raise ValueError("the body ends before its values do")
        if decimal and size > MAX_DECIMAL_BYTES:
            raise OutOfBounds(f"a decimal is longer than {MAX_DECIMAL_BYTES} bytes")
        self._at += size

    def _number(self) -> int:
        """A zig-zag number of at most 64 bits."""
        number = 0
        for place, byte in enumerate(self._body[self._at : self._at + _MAX_VARINT_BYTES]):
            number |= (byte & 127) << 7 * place
            if byte < 128 and number < 1 << 64:
                self._at += place + 1
                return number >> 1 ^ -(number & 1)
        raise ValueError("a number that does not end, or is longer than 64 bits")


def _is_decimal(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("logicalType") == "decimal"
