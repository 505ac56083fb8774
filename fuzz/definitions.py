"""Writer schemas made of what schemas are made of, each with a body: it compiles or is refused, decodes or does not.

The first byte says what is made: an Avro schema, a JSON schema with a value, a Protobuf message, or (as clients may
send anything) whatever the input's own bytes say. What must hold: a refusal of one line in our words, else a value
that can be written as JSON; nothing takes long.
"""

import json
from typing import Any

from google.protobuf import descriptor_pb2

from desk.stack.managed.schemas import SchemaError, Undecodable, compiled
from fuzz.examples import protobuf_source
from fuzz.whole import Bytes

NUMBERS: tuple[Any, ...] = (
    0,
    1,
    2,
    -1,
    9,
    38,
    1_000,
    10**6,
    10**9,
    2**31,
    2**63,
    10**30,
    0.5,
    1e308,
    1e-300,
    -5,
)
LARGEST = 100_000  # bytes of a body
_PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_LOGICAL = (
    ("int", "date"), ("int", "time-millis"), ("long", "time-micros"), ("long", "timestamp-millis"),
    ("long", "timestamp-micros"), ("long", "local-timestamp-micros"), ("string", "uuid"), ("long", "unknown"),
)  # fmt: skip
_PATTERNS = (
    "^a*$", "(a+)+$", "^(a|b|ab)*c", "[^x]{0,1000}y", "\\d+", "(?i)Ä", "(", "x{5000}", "(x{100}){100}", "\\p{L}*",
    ".*.*.*=", "(?=a)b", "^$",
)  # fmt: skip
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null", "what")
_KEYS = ("a", "b", "c", "", "x" * 100, "ä")
_TEXTS = ("", "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "ab" * 200, "x" * 5_000, "2026-11-29", "ä\0")


def schemas(data: bytes) -> None:
    """One schema, one body."""
    source = Bytes(data)
    match source.byte() % 4:
        case 0:
            made = {"kind": "avro", "schema": json.dumps(_avro(source, [], 0))}
            body = source.rest
        case 1:
            made = {"kind": "json_schema", "schema": json.dumps(_json_schema(source, 0))}
            body = json.dumps(_value(source, 0)).encode()
        case 2:
            made, body = protobuf_source(_file(source)), source.rest
        case _:
            made, body = _raw(source)
    if len(body) > LARGEST:
        return  # what takes long because it is long is no finding
    try:
        schema = compiled(made)
    except SchemaError as refused:
        _said(refused)
        return
    try:
        json.dumps(schema.decode(body))
    except Undecodable as refused:
        _said(refused)


def _said(refused: Exception) -> None:
    text = str(refused)
    assert text and "\n" not in text and len(text) < 1_000, text


def _raw(source: Bytes) -> tuple[dict[str, Any], bytes]:
    kind, definition = source.pick(("avro", "json_schema", "protobuf", "what")), source.chunk()
    if kind == "protobuf":
        return {"kind": kind, "descriptor_set": definition, "message_type": "m.M"}, source.rest
    return {"kind": kind, "schema": definition.decode("utf-8", "replace")}, source.rest


def _avro(source: Bytes, names: list[str], depth: int) -> Any:
    choice = source.byte() % 16 if depth < 12 else source.byte() % 6
    match choice:
        case 0 | 1:
            return source.pick(_PLAIN)
        case 2:
            kind, logical = source.pick(_LOGICAL)
            return {"type": kind, "logicalType": logical}
        case 3 | 4:
            return source.pick(names) if names else "null"
        case 5:
            digits = {"precision": source.pick(NUMBERS), "scale": source.pick(NUMBERS)}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case 6 | 7:
            return {"type": "array", "items": _avro(source, names, depth + 1)}
        case 8:
            return {"type": "map", "values": _avro(source, names, depth + 1)}
        case 9 | 10:
            return [_avro(source, names, depth + 1) for _ in range(source.byte() % 4)]
        case 11:
            return {"type": "enum", "name": _named(names), "symbols": ["A", "B"][: source.byte() % 3]}
        case 12:
            fixed = {"type": "fixed", "name": _named(names), "size": source.pick(NUMBERS)}
            digits = {
                "logicalType": "decimal",
                "precision": source.pick(NUMBERS),
                "scale": source.pick(NUMBERS),
            }
            return fixed | digits if source.byte() % 2 else fixed
    record: dict[str, Any] = {"type": "record", "name": _named(names)}
    fields = [{"name": f"f{n}", "type": _avro(source, names, depth + 1)} for n in range(source.byte() % 5)]
    return {**record, "fields": fields}


def _named(names: list[str]) -> str:
    names.append(f"n{len(names)}")
    return names[-1]


def _json_schema(source: Bytes, depth: int) -> Any:
    if depth > 6:
        return source.pick((True, False, {}, {"$ref": "#"}))
    made: dict[str, Any] = {}
    for _ in range(source.byte() % 5):
        match source.byte() % 18:
            case 0:
                made["type"] = source.pick(_TYPES)
            case 1:
                made["type"] = [source.pick(_TYPES) for _ in range(source.byte() % 4)]
            case 2:
                made["pattern"] = source.pick(_PATTERNS)
            case 3:
                made["properties"] = {
                    source.pick(_KEYS): _json_schema(source, depth + 1) for _ in range(source.byte() % 4)
                }
            case 4:
                made["patternProperties"] = {source.pick(_PATTERNS): _json_schema(source, depth + 1)}
            case 5:
                made[source.pick(("additionalProperties", "unevaluatedProperties"))] = _json_schema(
                    source, depth + 1
                )
            case 6:
                made[source.pick(("items", "contains", "unevaluatedItems", "not", "if", "then", "else"))] = (
                    _json_schema(source, depth + 1)
                )
            case 7 | 8:
                word = source.pick(("allOf", "anyOf", "oneOf", "prefixItems"))
                made[word] = [_json_schema(source, depth + 1) for _ in range(1 + source.byte() % 4)]
            case 9:
                made["uniqueItems"] = True
            case 10:
                made["$ref"] = source.pick(
                    ("#", "#/$defs/d", "#/properties/a", "#nowhere", "http://127.0.0.1:1/x", "#d")
                )
            case 11:
                made["$defs"] = {"d": _json_schema(source, depth + 1)}
            case 12:
                word = (
                    "minimum",
                    "maximum",
                    "multipleOf",
                    "maxLength",
                    "minItems",
                    "maxProperties",
                    "minContains",
                )
                made[source.pick(word)] = source.pick(NUMBERS)
            case 13:
                made["enum"] = [_value(source, 3) for _ in range(source.byte() % 5)]
            case 14:
                made["const"] = _value(source, 3)
            case 15:
                made["propertyNames"] = _json_schema(source, depth + 1)
            case 16:
                made[source.pick(("$id", "$anchor", "$dynamicAnchor", "$dynamicRef"))] = source.pick(
                    ("d", "#d", "x:y", "")
                )
            case 17:
                made["$schema"] = source.pick(
                    (
                        "https://json-schema.org/draft/2020-12/schema",
                        "http://json-schema.org/draft-07/schema#",
                        "http://json-schema.org/draft-03/schema#",
                        "x:y",
                    )
                )
    return made


def _value(source: Bytes, depth: int) -> Any:
    match source.byte() % 8 if depth < 8 else source.byte() % 4:
        case 0:
            return source.pick(NUMBERS)
        case 1:
            return source.pick(_TEXTS)
        case 2:
            return source.pick((None, True, False))
        case 3:
            return int.from_bytes(source.take(source.byte()), "big")
        case 4:
            return {source.pick(_KEYS): _value(source, depth + 1) for _ in range(source.byte() % 6)}
        case 5:
            return [_value(source, depth + 1) for _ in range(source.byte() % 6)]
        case 6:
            return [_value(source, depth + 1)] * source.pick((2, 10, 100, 1_000) if not depth else (1, 2))
        case _:
            return {str(place): place for place in range(source.pick((3, 30, 1_000)))}


def _file(source: Bytes) -> descriptor_pb2.FileDescriptorProto:
    """Up to four messages of up to six fields of any kind, each of which may be of any of the messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name="m.proto", package="m", syntax=source.pick(("proto3", "proto2"))
    )
    file.enum_type.add(name="U").value.add(name="C", number=0)
    names = ("M", "A", "B", "D")[: 1 + source.byte() % 4]
    for name in names:
        message = file.message_type.add(name=name)
        for number in range(1, 1 + source.byte() % 7):
            kind = 1 + source.byte() % 18
            field = message.field.add(
                name=f"f{number}", number=number, type=kind, label=source.pick((1, 3, 1, 2))
            )
            if kind in (10, 11):
                field.type_name = f".m.{source.pick(names)}"
            elif kind == 14:
                field.type_name = ".m.U"
    return file
