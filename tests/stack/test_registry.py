"""The registry: control commands and control records, browsing, writer schemas."""

import io
import json
import subprocess
import sys

import fastavro
import pytest

from desk.stack.managed.schemas import SchemaError, Undecodable, compiled
from desk.stack.wire import agdx, cbor
from desk.stack.wire.registry import checked_binding
from desk.stack.wire.shape import ShapeError
from tests.stack.sdist import fixture
from tests.stack.viewing import INDEX, JSON, PROJECTION, pred

READING = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "host", "type": "string"},
            {"name": "cpu", "type": "double"},
            {"name": "raw", "type": ["null", "bytes"], "default": None},
        ],
    }
)
HOST_REQUIRED = {"kind": "json_schema", "schema": '{"type":"object","required":["host"]}'}


def sid(number, content_type=1):
    return {"agdx.ct": ("u8", bytes((content_type,))), "agdx.sid": ("u32", number.to_bytes(4, "little"))}


def avro(**fields):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(READING)), {"raw": None, **fields})
    return out.getvalue()


def register(views, source, **more):
    return views.bench.plain(agdx.REGISTER_SCHEMA, {"v": 1, "source": source, **more})


async def test_the_golden_listing(views):
    for name in ("control_register_projection", "control_apply_binding"):
        assert cbor.loads(views.bench.mutate(agdx.CONTROL_PUBLISH, fixture(f"{name}.bin")))["code"] == "ok"
    reply = views.bench.send(agdx.LIST_PROJECTIONS, cbor.dumps({"v": 1}))
    assert reply == fixture("browse_reply_projections.bin")
    found = views.bench.plain(agdx.GET_PROJECTION, {"v": 1, "id": "reading.v1"})
    assert found["Ok"]["Projection"] == cbor.loads(reply)["Ok"]["Projections"][0]
    assert views.bench.plain(agdx.GET_PROJECTION, {"v": 1, "id": "none"}) == {"Ok": {"Projection": None}}


def test_listing_filters_add_up(views):
    views.project("a")
    views.project("b", id="stream:desk/b.v1", name="readings")
    views.project("c", id="other.v1", name="readings")
    views.bind("one")

    def ids(**filters):
        found = views.bench.plain(agdx.LIST_PROJECTIONS, {"v": 1, **filters})["Ok"]["Projections"]
        return [info["projection"]["id"] for info in found]

    assert ids(id_prefix="stream:desk/") == [PROJECTION, "stream:desk/b.v1"]
    assert ids(topics=["one", "two"]) == [PROJECTION]
    assert ids(name_contains="read", id_prefix="other") == ["other.v1"]
    assert ids(search="b.v1") == ["stream:desk/b.v1"] and ids(search="readings") == [
        "stream:desk/b.v1",
        "other.v1",
    ]


def test_a_graph_projection_is_recorded_and_makes_no_rows(views):
    schema = {"nodes": [{"label": "van", "value_pointer": "/van"}]}
    body = {
        "id": "g.v1",
        "name": "g",
        "version": 1,
        "kind": 1,
        "content_type": "json",
        "extraction": {"fields": []},
    }
    assert views.control({"RegisterGraph": {**body, "entity_schema": schema}}) == "ok"
    views.bind(default="g.v1")
    views.publish({"van": "v1"})
    (info,) = views.bench.plain(agdx.LIST_PROJECTIONS, {"v": 1})["Ok"]["Projections"]
    assert info["projection"]["entity_schema"] == schema and info["bindings"][0]["index"] == INDEX
    assert views.control({"DropGraph": "g.v1"}) == "ok"
    assert views.bench.plain(agdx.LIST_PROJECTIONS, {"v": 1})["Ok"]["Projections"] == []


async def test_every_command_is_a_stamped_record_of_the_control_topic(views):
    views.project("a")
    views.bind()
    records = list(views.bench.log.read("_agdx", agdx.CONTROL_TOPIC, 0, 0))
    first, second = (cbor.loads(record.payload) for record in records)
    assert list(first["command"]) == ["RegisterProjection"] and list(second["command"]) == ["ApplyBinding"]
    assert first["timestamp_micros"] == records[0].timestamp and first["stamp"]["actor_user_id"] == 1


async def test_a_control_record_put_on_the_topic_is_applied_too(views):
    views.project("a")
    views.bind()
    views.publish({"a": 1})
    source = {"stream": "desk", "topic": "events"}
    command = {"RemoveBinding": {"source": source, "projection_ref": None}}
    envelope = cbor.dumps({"v": 1, "timestamp_micros": 0, "command": command})
    views.bench.publish(
        "_agdx", agdx.CONTROL_TOPIC, [(b"rubbish", {}), (envelope, {}), (cbor.dumps({"v": 1}), {})]
    )
    assert await views.error() == {"IndexNotFound": INDEX}


@pytest.mark.parametrize("name", ["accept_gap", "skip_record", "filter_catalog"])
def test_operator_commands_are_forbidden(views, name):
    assert (
        views.bench.plain(agdx.CONTROL_PUBLISH, views.bench.frame(fixture(f"control_{name}.bin")))["code"]
        == "forbidden"
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("nothing", "invalid_argument"),
        ({"A": 1, "B": 2}, "invalid_argument"),
        ({"Unheard": 1}, "unsupported"),
        ({"RegisterGraph": {}}, "invalid_argument"),
        ({"RegisterProjection": {"id": "x"}}, "invalid_argument"),
        ({"DropProjection": 5}, "invalid_argument"),
        ({"ApplyBinding": {"source": {"stream": "s"}, "index": "i"}}, "invalid_argument"),
        ({"RegisterSchema": {"id": 1, "source": {"kind": "avro", "schema": "{"}}}, "invalid_argument"),
    ],
)
def test_a_command_that_is_none_says_so_and_leaves_no_record(views, command, code):
    assert views.control(command) == code
    assert views.bench.log.topic_info("_agdx", agdx.CONTROL_TOPIC) is None


@pytest.mark.parametrize("field", [" a", "", "a\n", "__laser_offset", "x" * 256])
def test_a_field_name_no_reply_could_carry_is_refused(views, field):
    rules = {"fields": [{"name": field, "pointer": "/a"}], "inline_payload": False}
    body = {"id": "p", "name": "p", "version": 1, "content_type": "json", "extraction": rules}
    assert views.control({"RegisterProjection": body}) == "invalid_argument"


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ("stream:desk/" + "x" * 244, "counted, has at most 255 bytes (this one has 256)"),
        (" a", "no space around it"),
        ("", "needs a stream, a topic and an index"),
    ],
)
def test_an_index_name_that_is_refused_says_why(index, says):
    source = {"stream": "desk", "topic": "t"}
    with pytest.raises(ShapeError) as refused:
        checked_binding({"source": source, "index": index, "default_projection": "p"})
    assert says in str(refused.value)
    assert checked_binding({"source": source, "index": "x" * 255, "default_projection": "p"})


async def test_quotes_and_sql_in_names_are_only_names(views):
    evil = 'c0"; DROP TABLE view; --'
    views.project((evil, "/a"), ("c0", "/b"))
    views.bind(index=evil)
    views.publish({"a": 1, "b": 2})
    assert await views.rows(index=evil, filter=pred(evil, "eq", 1)) == [{evil: 1, "c0": 2}]


def test_schemas_are_numbered_per_registry(views):
    source = {"kind": "avro", "schema": READING}
    assert register(views, source, name="fills", version=1) == {"Ok": {"SchemaRegistered": 1}}
    assert register(views, HOST_REQUIRED) == {"Ok": {"SchemaRegistered": 2}}
    assert register(views, HOST_REQUIRED, stream="desk", name="d") == {"Ok": {"SchemaRegistered": 1}}
    listed = views.bench.plain(agdx.LIST_SCHEMAS, {"v": 1})["Ok"]["Schemas"]
    assert listed[0] == {
        "schema": {"id": 1, "source": source, "name": "fills", "version": 1},
        "dropped": False,
    }
    named = views.bench.plain(agdx.LIST_SCHEMAS, {"v": 1, "name_contains": "fill"})["Ok"]["Schemas"]
    assert [s["schema"]["id"] for s in named] == [1]
    own = views.bench.plain(agdx.GET_SCHEMA, {"v": 1, "id": 1, "stream": "desk"})["Ok"]["Schema"]
    assert own["schema"]["name"] == "d"
    assert views.bench.plain(agdx.GET_SCHEMA, {"v": 1, "id": 9}) == {"Ok": {"Schema": None}}


def test_schema_replies_are_the_golden_ones(views):
    definitions = views.bench.band.surfaces["registry"].definitions
    golden = cbor.loads(fixture("browse_reply_schemas.bin"))["Ok"]["Schemas"]
    with views.bench.store.transaction():
        for info in golden:
            definitions.put_schema("", info["schema"], dropped=info["dropped"])
    listed = views.bench.plain(agdx.LIST_SCHEMAS, {"v": 1})["Ok"]["Schemas"]
    assert listed == sorted(golden, key=lambda info: info["schema"]["id"])
    assert cbor.dumps({"Ok": {"Schemas": [s for g in golden for s in listed if s == g]}}) == fixture(
        "browse_reply_schemas.bin"
    )
    for known in (3, 9, 7):
        with views.bench.store.transaction():
            definitions._db.execute("DELETE FROM writer_schema WHERE id = ?", (known,))
    with views.bench.store.transaction():
        definitions.reload()
        definitions.put_schema("", {"id": 6, "source": HOST_REQUIRED})
    reply = views.bench.send(agdx.REGISTER_SCHEMA, fixture("register_schema_managed.bin"))
    assert reply == fixture("browse_reply_schema_registered.bin")


def test_a_dropped_schema_keeps_its_number_and_still_decodes(views):
    register(views, {"kind": "avro", "schema": READING})
    assert views.control({"DropSchema": 1}) == "ok" == views.control({"DropSchema": 5})
    assert views.bench.plain(agdx.GET_SCHEMA, {"v": 1, "id": 1})["Ok"]["Schema"]["dropped"] is True
    assert register(views, HOST_REQUIRED) == {"Ok": {"SchemaRegistered": 2}}
    taken = {"id": 2, "source": {"kind": "avro", "schema": READING}}
    assert views.control({"RegisterSchema": taken}) == "conflict"
    decoded = views.bench.plain(agdx.DECODE_RECORD, {"v": 1, "id": 1, "payload": avro(host="h", cpu=0.5)})
    assert decoded == {"Ok": {"Decoded": {"host": "h", "cpu": 0.5, "raw": None}}}


def test_decode_answers_null_for_what_does_not_decode(views):
    register(views, {"kind": "avro", "schema": READING})
    register(views, HOST_REQUIRED)
    golden = cbor.loads(fixture("browse_reply_decoded.bin"))["Ok"]["Decoded"]
    reply = views.bench.send(
        agdx.DECODE_RECORD, cbor.dumps({"v": 1, "id": 2, "payload": json.dumps(golden).encode()})
    )
    assert reply == fixture("browse_reply_decoded.bin")
    for number, body in ((1, b"\xff"), (2, b"{}"), (2, b"{"), (7, b"{}")):
        request = {"v": 1, "id": number, "payload": body}
        assert views.bench.plain(agdx.DECODE_RECORD, request) == {"Ok": {"Decoded": None}}


async def test_a_record_that_violates_its_schema_is_not_projected(views):
    register(views, HOST_REQUIRED, stream="desk")
    views.project("host", "cpu")
    views.bind()
    views.publish({"host": "a", "cpu": 1}, headers=sid(1))
    views.publish({"cpu": 2}, headers={**sid(1), "agdx.idx.cpu": ("string", b"3")})
    views.publish({"cpu": 4}, headers=JSON)
    assert await views.rows("cpu") == [1, 4]
    (capsule,) = views.ops("dlq")
    assert (capsule["offset"], capsule["index"], capsule["projection"]) == (1, INDEX, PROJECTION)
    assert capsule["reason"] == "the record: 'host' is a required property"


def test_the_first_schema_costs_no_grammar():
    """Building one for formats nobody checks would hold everybody up for a second."""
    code = "from desk.stack.managed.schemas import JsonSchema; JsonSchema('{}'); import sys; print('lark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


async def test_avro_bodies_are_read_by_their_writer_schema(views):
    register(views, {"kind": "avro", "schema": READING}, stream="desk")
    views.project("host", "cpu", "raw", content_type="avro")
    views.bind()
    views.publish(avro(host="h", cpu=0.5, raw=b"\x00\xff"), headers=sid(1, 5))
    views.publish(b"\xff\xff", headers=sid(1, 5))
    views.publish(avro(host="x", cpu=1.0), headers={"agdx.ct": ("u8", b"\x05")})
    assert await views.rows() == [{"host": "h", "cpu": 0.5, "raw": "AP8="}]
    assert [c["reason"] for c in views.ops("dlq")] == [
        "the body does not decode under its Avro schema",
        "no writer schema named for an avro body",
    ]


async def test_protobuf_bodies_are_read_by_their_descriptor(views):
    descriptors, message = _protobuf()
    register(views, {"kind": "protobuf", "descriptor_set": descriptors, "message_type": "fleet.Reading"})
    views.project(
        ("host", "/host"), ("n", "/n"), ("unit", "/unit"), ("deep", "/inner/label"), ("first", "/tags/0")
    )
    views.bind()
    full = message(host="h", n=2**40, unit=1, tags=["a", "b"], counts={"x": 3})
    full.inner.label = "in"
    views.publish(full.SerializeToString(), headers=sid(1, 6))
    views.publish(message().SerializeToString() + b"\xff", headers=sid(1, 6))
    assert await views.rows() == [{"host": "h", "n": 2**40, "unit": "KELVIN", "deep": "in", "first": "a"}]
    assert compiled(
        {"kind": "protobuf", "descriptor_set": descriptors, "message_type": "fleet.Reading"}
    ).decode(full.SerializeToString())["counts"] == {"x": 3}


async def test_a_streams_own_schema_takes_the_place_of_the_deployments(views):
    register(views, {"kind": "json_schema", "schema": "{}"})
    views.project("host", "cpu")
    views.bind()
    views.publish({"host": "a", "cpu": 1}, {"cpu": 2}, headers=sid(1))
    assert await views.rows("cpu") == [1, 2]
    register(views, HOST_REQUIRED, stream="desk")
    assert await views.rows("cpu") == [1]  # and so says a rebuild


async def test_records_that_waited_for_their_schema_are_projected_when_it_comes(views):
    views.project("host", content_type="avro")
    views.bind()
    views.publish(avro(host="early", cpu=1.0), headers=sid(1, 5))
    assert await views.rows() == []
    register(views, {"kind": "avro", "schema": READING}, stream="desk")
    assert await views.rows("host") == ["early"]


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "avro", "schema": "{"},
        {"kind": "avro", "schema": '{"type":"nonsense"}'},
        {"kind": "json_schema", "schema": '{"type":5}'},
        {"kind": "json_schema", "schema": "[" * 100_000},
        {"kind": "protobuf", "descriptor_set": b"\x00\x01\x02\xff", "message_type": "x"},
        {"kind": "protobuf", "message_type": "x"},
        {"kind": "thrift"},
    ],
)
def test_a_definition_that_does_not_compile_is_one_sentence(views, source):
    (text,) = register(views, source)["Err"].values()
    assert "\n" not in text and len(text) < 300
    with pytest.raises(SchemaError):
        compiled(source)


def test_a_reference_to_another_document_is_never_fetched():
    schema = compiled({"kind": "json_schema", "schema": '{"$ref":"http://127.0.0.1:1/schema.json"}'})
    with pytest.raises(Undecodable, match="cannot be applied"):
        schema.decode(b"1")


def _protobuf():
    """(a FileDescriptorSet, the message class) of fleet.Reading."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="fleet.proto", package="fleet", syntax="proto3")
    unit = file.enum_type.add(name="Unit")
    for number, name in enumerate(("CELSIUS", "KELVIN")):
        unit.value.add(name=name, number=number)
    file.message_type.add(name="Inner").field.add(name="label", number=1, type=9, label=1)
    reading = file.message_type.add(name="Reading")
    for number, (name, kind, label, of) in enumerate(
        [
            ("host", 9, 1, ""),
            ("n", 3, 1, ""),
            ("unit", 14, 1, ".fleet.Unit"),
            ("inner", 11, 1, ".fleet.Inner"),
            ("tags", 9, 3, ""),
            ("counts", 11, 3, ".fleet.Reading.CountsEntry"),
        ],
        start=1,
    ):
        named = {"type_name": of} if of else {}
        reading.field.add(name=name, number=number, type=kind, label=label, **named)
    entry = reading.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=5, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("fleet.Reading"))
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), message
