"""Writer schemas that the fuzzed stack knows, and bodies written with them: with seeds alone a fuzzer finds none."""

import io
import json
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

JSON_ID, AVRO_ID, PROTOBUF_ID = 7, 8, 9
"""Under which the whole stack has them registered."""

JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"type": ["integer", "string", "null"], "minimum": -(2**70), "multipleOf": 0.5},
        "t": {"type": "string", "maxLength": 50, "pattern": "^(a|b|x|row )*[0-9]*$"},
        "a": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/tree"}, "contains": {"minProperties": 0}},
        "flag": {"enum": [True, False, "no", 1.0]},
    },
    "patternProperties": {"^e": {"items": {"type": "number"}}},
    "$defs": {"tree": {"type": "object", "additionalProperties": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/tree"}]}}},
}  # fmt: skip

AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "t", "type": ["null", "string"]},
        {"name": "flag", "type": "boolean"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 9}},
        {"name": "embedding", "type": {"type": "array", "items": "float"}},
        {"name": "more", "type": {"type": "map", "values": ["null", "double", "r"]}},
        {"name": "unit", "type": {"type": "enum", "name": "u", "symbols": ["C", "K"]}},
        {"name": "raw", "type": {"type": "fixed", "name": "f", "size": 2}},
        {"name": "next", "type": ["null", "r"]},
    ],
}
AVRO_VALUE: dict[str, Any] = {
    "n": 5, "t": "x", "flag": True, "ts": 1, "price": b"\x0f", "embedding": [1.0, 0.5], "more": {"a": 0.5, "b": None},
    "unit": "K", "raw": b"ab", "next": None,
}  # fmt: skip


def json_bodies() -> list[bytes]:
    """Bodies that the JSON schema accepts, refuses, or has work with."""
    nested: Any = 1
    for _ in range(40):
        nested = {"a": nested}
    values = (
        {"n": 1, "t": "row 12", "a": [{"b": 2.5}, {"b": {"c": 1}}], "flag": True},
        {"n": 10**400, "e1": [1, 2.5, "x"]},
        {"n": None, "t": "a" * 60 + "!"},
        {"a": [nested, nested]},
        {"n": "1", "a": [{"b": n} for n in range(30)]},
    )
    return [json.dumps(value).encode() for value in values]


def avro_bodies() -> list[bytes]:
    """A value, one within another, a chain of records deeper than is allowed, and a list that names 10^12 items."""
    return [
        written(AVRO_SCHEMA, AVRO_VALUE),
        written(AVRO_SCHEMA, {**AVRO_VALUE, "next": AVRO_VALUE, "more": {"r": AVRO_VALUE}}),
        written(AVRO_SCHEMA, AVRO_VALUE)[:-1] + b"\2" + written(AVRO_SCHEMA, AVRO_VALUE)[:-1] * 3,
        written(AVRO_SCHEMA, {**AVRO_VALUE, "price": b"\x7f" * 200}),
        b"\2\0\1\2\2\x0f" + written("long", 10**12) + bytes(8),
    ]


def written(schema: Any, value: Any) -> bytes:
    """An Avro body; decimals and times are given as the bytes and numbers they are written as."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_physical(schema)), value)
    return out.getvalue()


def _physical(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _physical(value) for key, value in schema.items() if key != "logicalType"}
    return [_physical(item) for item in schema] if isinstance(schema, list) else schema


def protobuf_file() -> descriptor_pb2.FileDescriptorProto:
    """m.M: numbers of every kind, text, bytes, an enum, itself, a list of itself, a map, a oneof."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto3")
    unit = file.enum_type.add(name="U")
    for number, name in enumerate(("C", "K")):
        unit.value.add(name=name, number=number)
    message = file.message_type.add(name="M")
    entry = message.nested_type.add(name="MoreEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=11, label=1, type_name=".m.M")
    message.oneof_decl.add(name="one")
    plain = [
        ("n", 3),
        ("t", 9),
        ("flag", 8),
        ("ts", 4),
        ("half", 2),
        ("whole", 1),
        ("raw", 12),
        ("signed", 18),
    ]
    for number, (name, kind) in enumerate(plain, 1):
        message.field.add(name=name, number=number, type=kind, label=1)
    message.field.add(name="unit", number=10, type=14, label=1, type_name=".m.U")
    message.field.add(name="next", number=11, type=11, label=1, type_name=".m.M")
    message.field.add(name="many", number=12, type=11, label=3, type_name=".m.M")
    message.field.add(name="more", number=13, type=11, label=3, type_name=".m.M.MoreEntry")
    message.field.add(name="embedding", number=14, type=2, label=3)
    message.field.add(name="a", number=15, type=5, label=1, oneof_index=0)
    message.field.add(name="b", number=16, type=9, label=1, oneof_index=0)
    return file


def protobuf_source(file: descriptor_pb2.FileDescriptorProto | None = None) -> dict[str, Any]:
    """The SchemaSource of `m.M`."""
    files = descriptor_pb2.FileDescriptorSet(file=[file or protobuf_file()])
    return {"kind": "protobuf", "descriptor_set": files.SerializeToString(), "message_type": "m.M"}


def protobuf_bodies() -> list[bytes]:
    """A message, messages within each other deeper than is allowed, and two thousand empty ones."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(protobuf_file())
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("m.M"))
    one = message(
        n=5, t="x", flag=True, ts=2**64 - 1, half=0.5, raw=b"ab", signed=-1, unit=1, embedding=[1, 2], b="y"
    )
    one.next.n = 7
    one.more["k"].whole = float("inf")
    deep = b""
    for _ in range(120):
        deep = b"\x5a" + bytes(((len(deep) & 127) | 128, len(deep) >> 7)) + deep
    return [one.SerializeToString(), deep, b"\x62\x00" * 2_000]


SOURCES: dict[int, dict[str, Any]] = {
    JSON_ID: {"kind": "json_schema", "schema": json.dumps(JSON_SCHEMA)},
    AVRO_ID: {"kind": "avro", "schema": json.dumps(AVRO_SCHEMA)},
    PROTOBUF_ID: protobuf_source(),
}
CONTENT_TYPES = {JSON_ID: 1, AVRO_ID: 5, PROTOBUF_ID: 6}
"""The value of `agdx.ct` that goes with a schema."""


def bodies() -> dict[int, list[bytes]]:
    """Bodies by the id of the schema they are written with."""
    return {JSON_ID: json_bodies(), AVRO_ID: avro_bodies(), PROTOBUF_ID: protobuf_bodies()}
