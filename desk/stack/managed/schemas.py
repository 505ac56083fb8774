"""Writer schemas: one compiled form with two questions, does a value conform, and what do these bytes say.

JSON Schema (jsonschema) validates what a self-describing body says; Avro (fastavro) and Protobuf (protobuf)
decode bodies by their writer schema. Each library is imported when the first schema of its kind is used.
"""

import base64
import io
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Protocol

from desk.stack.managed import avro_bounds, json_schemas

MAX_SCHEMA_BYTES = 1 << 20
_NO_MAP_KEYS = frozenset({1, 2, 10, 11, 12, 14})  # double, float, group, message, bytes, enum
MAX_FIELDS = 1 << 16  # of the messages in one Protobuf body, present or not: about 0.3 s


class SchemaError(ValueError):
    """A definition that does not compile; one sentence for a person."""


class Undecodable(ValueError):
    """A body that is not what its schema or content type says."""


class Violation(Undecodable):
    """A value that its JSON Schema refuses."""


class Compiled(Protocol):
    """A schema ready for use."""

    kind: str  # "json_schema", "avro", "protobuf"

    def decode(self, body: bytes) -> Any:
        """The body as JSON values; Undecodable when it does not conform."""

    def check(self, value: Any) -> None:
        """Undecodable when an already decoded value does not conform."""


def compiled(source: Mapping[str, Any]) -> Compiled:
    """Compile a `SchemaSource`; SchemaError when it is none."""
    kind = source.get("kind")
    if kind == "json_schema":
        return JsonSchema(_text(source))
    if kind == "avro":
        return Avro(_text(source))
    if kind == "protobuf":
        descriptors, message = source.get("descriptor_set"), source.get("message_type")
        if not isinstance(descriptors, bytes | list) or not isinstance(message, str):
            raise SchemaError("a protobuf schema needs a descriptor set and a message type")
        return Protobuf(bytes(descriptors), message)
    raise SchemaError(f"schemas of kind {kind!r} are not served")


class JsonSchema:
    """Validates; the body itself is JSON."""

    kind = "json_schema"

    def __init__(self, text: str) -> None:
        try:
            self._validator = json_schemas.Validator(json.loads(text))
        except json_schemas.TooMuch:
            raise SchemaError("the JSON schema is too large to be checked") from None
        except Exception as error:
            raise SchemaError(f"the JSON schema is not valid: {_line(error)}") from None

    def decode(self, body: bytes) -> Any:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            raise Undecodable("the body is not JSON") from None
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        try:
            problem = self._validator.problem(value)
        except json_schemas.TooMuch:
            raise Violation("the schema takes too long to check the value") from None
        except Exception as error:
            raise Violation(f"the schema cannot be applied: {_line(error)}") from None
        if problem is not None:
            raise Violation(problem)


class Avro:
    """Bodies are schemaless Avro binary."""

    kind = "avro"

    def __init__(self, text: str) -> None:
        import fastavro

        self._read = fastavro.schemaless_reader
        try:
            self._schema = fastavro.parse_schema(json.loads(text))
        except Exception as error:
            raise SchemaError(f"the Avro schema is not valid: {_line(error)}") from None
        self._names = avro_bounds.names_in(self._schema)

    def decode(self, body: bytes) -> Any:
        source = io.BytesIO(body)
        try:
            avro_bounds.Walk(self._names, body).over(self._schema)
            value = self._read(source, self._schema, None)
        except avro_bounds.OutOfBounds as error:
            raise Undecodable(str(error)) from None
        except Exception:
            raise Undecodable("the body does not decode under its Avro schema") from None
        if source.tell() != len(body):
            raise Undecodable("bytes are left over after the Avro value")
        return plain(value)

    def check(self, value: Any) -> None:
        """A decoded value says nothing about an Avro schema."""


class Protobuf:
    """Bodies are one message of a type from a FileDescriptorSet."""

    kind = "protobuf"

    def __init__(self, descriptors: bytes, message: str) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
            pool = descriptor_pool.DescriptorPool()
            for file in files.file:
                _check_map_entries(file.message_type)
                pool.Add(file)
            self._type = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
        except Exception as error:
            raise SchemaError(f"the Protobuf schema is not valid: {_line(error)}") from None

    def decode(self, body: bytes) -> Any:
        try:
            return _Fields().of(self._type.FromString(body))
        except Undecodable:
            raise
        except Exception:
            raise Undecodable("the body does not decode under its Protobuf schema") from None

    def check(self, value: Any) -> None:
        """A decoded value says nothing about a Protobuf schema."""


def _check_map_entries(messages: Iterable[Any]) -> None:
    """ValueError for a map entry that is none: the library believes what it says of itself, and reads beyond memory."""
    for message in messages:
        _check_map_entries(message.nested_type)
        if message.options.map_entry:
            fields = sorted((field.number, field.name, field.label) for field in message.field)
            if fields != [(1, "key", 1), (2, "value", 1)]:
                raise ValueError(f"{message.name} is no map entry")
            if min(message.field, key=lambda field: field.number).type in _NO_MAP_KEYS:
                raise ValueError(f"{message.name} has a key that maps do not have")


class _Fields:
    """The fields of one decoded body, counted: an empty message is two bytes, and may have thousands of them."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def of(self, message: Any) -> dict[str, Any]:
        """By their own names; fields that are not present are left out, enums are their names."""
        fields = message.DESCRIPTOR.fields
        self._left -= len(fields)
        if self._left < 0:
            raise Undecodable(f"the body's messages have more than {MAX_FIELDS} fields")
        out = {}
        for field in fields:
            if field.has_presence and not message.HasField(field.name):
                continue
            value = getattr(message, field.name)
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                inner = field.message_type.fields_by_name["value"]
                out[field.name] = {str(key): self._plain(inner, value[key]) for key in value}
            elif field.is_repeated:
                out[field.name] = [self._plain(field, item) for item in value]
            else:
                out[field.name] = self._plain(field, value)
        return out

    def _plain(self, field: Any, value: Any) -> Any:
        if field.message_type is not None:
            return self.of(value)
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return known.name if known else value
        return plain(value)


def plain(value: Any) -> Any:
    """A decoded value in JSON's types: bytes as base64, decimals as numbers, times as ISO text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, str | int | float):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _text(source: Mapping[str, Any]) -> str:
    text = source.get("schema")
    if not isinstance(text, str):
        raise SchemaError("the schema must be text")
    if len(text) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"the schema is longer than {MAX_SCHEMA_BYTES} bytes")
    return text


def _line(error: Exception) -> str:
    return str(getattr(error, "message", error)).split("\n", 1)[0][:200]
