"""Hostile schemas and bodies: every one ends soon, as one sentence and a dead letter, and nobody else waits."""

import contextlib
import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.managed.avro_bounds import MAX_LEVELS, MAX_VALUES
from desk.stack.managed.schemas import SchemaError, Undecodable, Violation, compiled
from tests.stack.test_registry import register, sid

CHAIN = {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "r"]}]}


def avro(schema):
    return compiled({"kind": "avro", "schema": json.dumps(schema)})


def number(value: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def test_an_avro_value_as_deep_as_allowed_decodes():
    depth = MAX_LEVELS // 3 - 1  # a union, the name, the record
    assert str(avro(CHAIN).decode(b"\x02" * depth + b"\x00")).count("x") == depth + 1


@pytest.mark.parametrize("levels", [MAX_LEVELS, 3_000, 100_000])
def test_an_avro_value_that_is_too_deep_is_refused(levels):
    with pytest.raises(Undecodable, match="nested deeper than 100 levels"):
        avro(CHAIN).decode(b"\x02" * levels + b"\x00")


def wide(levels: int) -> dict:
    """A record of two records of two records ...: 2^levels values in no bytes at all."""
    schema: dict = {"type": "record", "name": "r0", "fields": []}
    for level in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"r{level - 1}"}]
        schema = {"type": "record", "name": f"r{level}", "fields": fields}
    return schema


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ({"type": "array", "items": "null"}, number(10**12) + b"\x00"),
        ({"type": "array", "items": "null"}, number(-(10**12)) + number(0) + b"\x00"),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}, number(2**62)),
        ({"type": "array", "items": {"type": "record", "name": "r", "fields": []}}, number(10**9)),
        (wide(40), b""),
    ],
)
def test_an_avro_body_of_too_many_values_is_refused(schema, body):
    with pytest.raises(Undecodable, match=f"more than {MAX_VALUES} values"):
        avro(schema).decode(body)


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ("string", number(2**40)),
        ("bytes", number(-1)),
        ({"type": "map", "values": "null"}, number(2) + number(1) + b"a" + number(2**50)),
        ("long", b"\xff" * 11),
        ("long", b"\xff" * 9 + b"\x7f"),
        (["null", "int"], number(2)),
        (["null", "int"], number(-1) + b"\x00"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, number(-1)),
        ({"type": "fixed", "name": "f", "size": 3}, b"ab"),
        ({"type": "fixed", "name": "f", "size": -3}, b"abc"),
    ],
)
def test_an_avro_body_the_schema_does_not_explain_is_refused(schema, body):
    with pytest.raises(Undecodable, match="does not decode"):
        avro(schema).decode(body)


def test_an_avro_decimal_is_bounded():
    schema = avro({"type": "bytes", "logicalType": "decimal", "precision": 999_999, "scale": 1})
    assert schema.decode(number(1) + b"\x0f") == 1.5
    with pytest.raises(Undecodable, match="decimal"):
        schema.decode(number(300_000) + b"\x7f" * 300_000)


KINDS = {
    "type": "record",
    "name": "all",
    "namespace": "desk",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "number", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "half", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "raw", "type": {"type": "fixed", "name": "two", "size": 2}},
        {"name": "again", "type": "two"},
        {"name": "unit", "type": {"type": "enum", "name": "unit", "symbols": ["C", "K"]}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "next", "type": ["null", "all"]},
    ],
}


def test_every_kind_of_avro_value_is_walked():
    value = {
        "flag": True, "number": -1, "half": 0.5, "double": 1.25, "raw": b"ab", "again": b"cd", "unit": "K",
        "tags": ["a", None, "b"], "counts": {"x": -(2**31), "y": 7}, "next": None,
    }  # fmt: skip
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(KINDS), {**value, "next": value})
    read = avro(KINDS).decode(out.getvalue())
    assert read["next"]["counts"] == value["counts"] and read["next"]["tags"] == value["tags"]
    assert (read["unit"], read["double"], read["again"]) == ("K", 1.25, "Y2Q=")


ALL_KINDS = avro(KINDS)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=8), st.integers(0, 60))
def test_any_bytes_are_a_value_or_undecodable(data, more, place):
    out = io.BytesIO()
    value = {
        "flag": True, "number": 5, "half": 0.5, "double": 1.25, "raw": b"ab", "again": b"cd", "unit": "K",
        "tags": ["a", None], "counts": {"x": 1}, "next": None,
    }  # fmt: skip
    fastavro.schemaless_writer(out, fastavro.parse_schema(KINDS), {**value, "next": value})
    whole = out.getvalue()
    for body in (data, whole[:place] + more + whole[place + len(more) :], whole[:place]):
        with contextlib.suppress(Undecodable):
            json.dumps(ALL_KINDS.decode(body))


async def test_a_hostile_avro_body_is_a_dead_letter_and_the_next_record_is_a_row(views):
    chain = {**CHAIN, "fields": [{"name": "n", "type": "int"}, *CHAIN["fields"]]}
    register(views, {"kind": "avro", "schema": json.dumps(chain)}, stream="desk")
    views.project("n", content_type="avro")
    views.bind()
    for levels in (3_000, 100_000):
        views.publish(b"\x02" * 2 * levels, headers=sid(1, 5))
    views.publish(number(7) + b"\x00", headers=sid(1, 5))
    assert await views.rows("n") == [7]
    assert {c["reason"] for c in views.ops("dlq")} == {"the body is nested deeper than 100 levels"}


def test_a_protobuf_body_of_many_wide_messages_is_refused():
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="w.proto", package="w", syntax="proto3")
    inner = file.message_type.add(name="Inner")
    for place in range(1_000):
        inner.field.add(name=f"f{place}", number=place + 1, type=5, label=1)
    outer = file.message_type.add(name="Outer")
    outer.field.add(name="many", number=1, type=11, label=3, type_name=".w.Inner")
    source = {
        "kind": "protobuf",
        "descriptor_set": descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(),
        "message_type": "w.Outer",
    }
    assert len(compiled(source).decode(b"\x0a\x00" * 60)["many"]) == 60
    with pytest.raises(Undecodable, match="more than 65536 fields"):
        compiled(source).decode(b"\x0a\x00" * 10_000)


@pytest.mark.parametrize(
    ("place", "part", "value"), [(0, "number", 4), (0, "type", 1), (0, "label", 3), (1, "name", "v")]
)
def test_a_protobuf_map_entry_that_is_none_is_refused(place, part, value):
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto3")
    message = file.message_type.add(name="M")
    entry = message.nested_type.add(name="MoreEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=5, label=1)
    message.field.add(name="more", number=1, type=11, label=3, type_name=".m.M.MoreEntry")

    def source():
        files = descriptor_pb2.FileDescriptorSet(file=[file])
        return {"kind": "protobuf", "descriptor_set": files.SerializeToString(), "message_type": "m.M"}

    assert compiled(source()).decode(b"\x0a\x05\x0a\x01a\x10\x07") == {"more": {"a": 7}}
    setattr(entry.field[place], part, value)
    with pytest.raises(SchemaError, match="map"):
        compiled(source())


def json_schema(schema):
    return compiled({"kind": "json_schema", "schema": json.dumps(schema)})


def doubling(levels: int, **start) -> dict:
    """References that double at every level."""
    rules: dict = {"a0": {"type": "integer"}}
    for level in range(levels):
        rules[f"a{level + 1}"] = {"allOf": [{"$ref": f"#/$defs/a{level}"}] * 2}
    return {"$defs": rules, "$ref": f"#/$defs/a{levels}", **start}


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"pattern": "^(a|a)*$", "$schema": "http://json-schema.org/draft-07/schema#"},
        {"pattern": "^(a?){60}a{60}$"},
        {
            "$ref": "#/$defs/x",
            "$defs": {"x": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}},
        },
    ],
)
def test_patterns_match_in_linear_time(schema):
    for count in (40, 4_000):
        with pytest.raises(Violation, match="does not match"):
            json_schema(schema).check("a" * count + "!")


def test_patterns_of_names_match_in_linear_time():
    name = "a" * 4_000 + "!"
    schema = json_schema(
        {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False}
    )
    schema.check({"aaa": 1})
    for value, says in (({"a": "x"}, "/a: 'x' is not of type"), ({name: 1}, "Additional properties")):
        with pytest.raises(Violation, match=says):
            schema.check(value)


@pytest.mark.parametrize("pattern", ["(?=x)", r"(a)\1", "(", "(a{1000}){1000}", r"\p{L}{1000}"])
@pytest.mark.parametrize("place", ["pattern", "patternProperties"])
def test_a_pattern_that_is_not_served_is_one_sentence(place, pattern):
    with pytest.raises(SchemaError, match="RE2"):
        json_schema({place: pattern if place == "pattern" else {pattern: True}})


def test_unevaluated_properties_know_no_patterns():
    json_schema({"unevaluatedProperties": False})
    with pytest.raises(SchemaError, match="not served together"):
        json_schema({"allOf": [{"patternProperties": {"^(a+)+$": True}}], "unevaluatedProperties": False})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(40), 1),
        (doubling(40, unevaluatedItems=False), [1] * 20_000),
        ({"anyOf": [{"type": "integer"}] * 500}, ["x" * 1_000_000]),
        ({"items": {"enum": [[[0] * 100, n] for n in range(500)]}}, [[[0] * 100, -1]] * 500),
        ({"pattern": "([a-z]{30}x){30}"}, "a" * 10_000_000),
        ({"items": {"type": "integer"}}, [1] * 1_000_000),
    ],
)
def test_a_check_that_takes_too_long_is_a_violation(schema, value):
    with pytest.raises(Violation, match="too long"):
        json_schema(schema).check(value)


def test_a_schema_that_is_too_large_is_refused():
    with pytest.raises(SchemaError, match="too large"):
        json_schema({"properties": {f"p{n}": {"type": "string"} for n in range(20_000)}})


@pytest.mark.parametrize("text", ["5", "[]", "null", '{"$schema":[]}', '{"type":5}'])
def test_what_is_no_schema_is_one_sentence(text):
    with pytest.raises(SchemaError, match="JSON schema is not valid"):
        compiled({"kind": "json_schema", "schema": text})


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, "1", [1], [True], None, 0, False, {"a": 1}, {"a": "1"}], True),
        ([{"a": n, "b": [n]} for n in range(10_000)], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
    ],
)
def test_items_are_unique_by_what_they_are_worth(items, unique):
    schema = json_schema({"uniqueItems": True})
    if unique:
        return schema.check(items)
    with pytest.raises(Violation, match="not unique"):
        schema.check(items)


def test_an_ordinary_large_record_is_checked():
    row = {"a": {"type": "integer", "minimum": 0}, "b": {"type": "string", "pattern": "^[a-z]+$"}}
    schema = json_schema({"items": {"type": "object", "properties": row, "required": ["a"]}})
    schema.check([{"a": 1, "b": "x"}] * 5_000)
    with pytest.raises(Violation, match="/4999/a"):
        schema.check([{"a": 1, "b": "x"}] * 4_999 + [{"a": -1}])


async def test_a_hostile_json_body_is_a_dead_letter_and_the_next_record_is_a_row(views):
    source = json.dumps({"properties": {"a": {"pattern": "^(a+)+$"}, "b": doubling(40) | {"$id": "b"}}})
    register(views, {"kind": "json_schema", "schema": source}, stream="desk")
    views.project("a")
    views.bind()
    views.publish({"a": "a" * 40 + "!"}, {"b": 1}, {"a": "aa"}, headers=sid(1))
    assert await views.rows("a") == ["aa"]
    first, second = (c["reason"] for c in views.ops("dlq"))
    assert "does not match" in first and "too long" in second
