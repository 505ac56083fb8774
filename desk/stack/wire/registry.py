"""The registry: control commands, what they register, browse requests.

control   {v, timestamp_micros, command, stream?, stamp?}, answered {code, message}; the same bytes are a record
          of _agdx/control.commands
command   {RegisterProjection|RegisterGraph: projection} {DropProjection|DropGraph: id}
          {ApplyBinding: binding} {RemoveBinding: {source, projection_ref: id|null}}
          {RegisterSchema: {id, source, name?, version?}} {DropSchema: id}
          {RegisterSessionSource: {stream, topics: "All"|{Named: [topic]}}} {RemoveSessionSource: {stream}}
projection {id, name, version, kind?: 1 for a graph, content_type, extraction: {fields: [{name, pointer,
          field_type?}], vector_field?, inline_payload}, entity_schema?, inline_payload_default}
binding   {source: {stream, topic}, allowed_projections, default_projection: id|null, backend?, index, notify?,
          retention?: {kind, ttl_micros?, rows?}, skip_rejected?}
schema    {kind: "avro"|"json_schema", schema: text} {kind: "protobuf", descriptor_set, message_type}

browse    get/list projection {Projection|Projections: {projection, bindings?}}, get/list/register schema
          {Schema|Schemas: {schema, dropped}} {SchemaRegistered: id}, decode {Decoded: json}
change    a record of _agdx/changes: {v, index, partition_id, from_offset, to_offset, rows}
"""

from collections.abc import Mapping
from typing import Any

from desk.stack.wire import agdx, cbor
from desk.stack.wire.query import MAX_NAME_BYTES, valid_name
from desk.stack.wire.shape import ANY, BOOL, BYTES, LIST, MAP, TEXT, U32, Shape, ShapeError, check, optional

CONTENT_TYPE_CODES = {
    0: "raw", 1: "json", 2: "msgpack", 3: "cbor", 4: "bson", 5: "avro", 6: "protobuf", 7: "arrow", 8: "ref",
    255: "any",
}  # fmt: skip
"""Values of the header `agdx.ct`; the names are a projection's content types."""
MIRROR, KEEP, UNTIL_DELETED, TTL, MAX_ROWS = (
    "mirror_log",
    "keep",
    "keep_until_source_deleted",
    "time_to_live",
    "max_rows",
)
"""Kinds of retention."""
GRAPH = 1  # the `kind` of a graph projection; row projections have none
MAX_FIELDS = 256  # of one projection

Body = dict[str, Any]

CONTROL: Shape = {"v": U32, "command": ANY, "stream": optional(TEXT)}
SOURCE: Shape = {"stream": TEXT, "topic": TEXT}
DEFINITION: Shape = {"id": U32, "source": MAP, "name": optional(TEXT), "version": optional(U32)}
REQUESTS: Mapping[int, Shape] = {
    agdx.CONTROL_PUBLISH: CONTROL,
    agdx.GET_PROJECTION: {"v": U32, "id": TEXT},
    agdx.LIST_PROJECTIONS: {
        "v": U32,
        "topics": optional(LIST),
        "name_contains": optional(TEXT),
        "id_prefix": optional(TEXT),
        "search": optional(TEXT),
    },
    agdx.GET_SCHEMA: {"v": U32, "id": U32, "stream": optional(TEXT)},
    agdx.LIST_SCHEMAS: {"v": U32, "name_contains": optional(TEXT), "stream": optional(TEXT)},
    agdx.REGISTER_SCHEMA: {
        "v": U32,
        "source": MAP,
        "name": optional(TEXT),
        "version": optional(U32),
        "stream": optional(TEXT),
    },
    agdx.DECODE_RECORD: {"v": U32, "id": U32, "payload": BYTES, "stream": optional(TEXT)},
}
_PROJECTION: Shape = {"id": TEXT, "name": TEXT, "version": U32, "content_type": TEXT, "extraction": MAP}
_RULES: Shape = {"fields": optional(LIST), "vector_field": optional(TEXT), "inline_payload": optional(BOOL)}
_RULE: Shape = {"name": TEXT, "pointer": TEXT, "field_type": optional(TEXT)}
_BINDING: Shape = {
    "source": MAP,
    "allowed_projections": optional(LIST),
    "default_projection": optional(TEXT),
    "index": TEXT,
    "notify": optional(BOOL),
    "retention": optional(MAP),
}


def checked_projection(body: Any) -> Body:
    """A projection as registered; ShapeError names what is wrong."""
    body = check(body, _PROJECTION)
    if not body["id"] or body["content_type"] not in CONTENT_TYPE_CODES.values():
        raise ShapeError("a projection needs an id and a content type of the protocol")
    rules = check(body["extraction"], _RULES).get("fields") or ()
    if len(rules) > MAX_FIELDS:
        raise ShapeError(f"a projection has at most {MAX_FIELDS} fields")
    for rule in rules:
        check(rule, _RULE)
        if not valid_name(rule["name"]) or rule["name"].startswith("__laser_"):
            raise ShapeError("a field name must be 1 to 255 bytes, trimmed, and not start with __laser_")
        if rule["pointer"] and not rule["pointer"].startswith("/"):
            raise ShapeError(f"the pointer of field {rule['name']} must start with /")
    return body


def checked_binding(body: Any) -> Body:
    """A binding as registered; ShapeError names what is wrong."""
    default = body.get("default_projection") if isinstance(body, dict) else None
    body = check(body, _BINDING)
    check(body["source"], SOURCE)
    if not body["source"]["stream"] or not body["source"]["topic"] or not body["index"]:
        raise ShapeError("a binding needs a stream, a topic and an index")
    if not valid_name(body["index"]):
        size = len(body["index"].encode("utf-8", "replace"))
        raise ShapeError(
            f"an index name, its scope `stream:<stream>/` counted, has at most {MAX_NAME_BYTES} bytes (this one "
            f"has {size}), no control characters and no space around it"
        )
    if not all(isinstance(name, str) for name in body.get("allowed_projections") or ()):
        raise ShapeError("allowed projections are ids")
    _check_retention(body.get("retention"))
    if default is None:  # the wire has it always, null when there is none
        body = {key: body[key] for key in ("source", "allowed_projections") if key in body} | {
            "default_projection": None,
            **{key: value for key, value in body.items() if key not in ("source", "allowed_projections")},
        }
    return body


def _check_retention(retention: Mapping[str, Any] | None) -> None:
    kind = MIRROR if retention is None else retention.get("kind")
    if kind not in (MIRROR, KEEP, UNTIL_DELETED, TTL, MAX_ROWS):
        raise ShapeError(f"the retention {kind!r} is not served")
    number = {TTL: "ttl_micros", MAX_ROWS: "rows"}.get(kind)
    if retention is not None and number is not None:
        value = retention.get(number)
        if type(value) is not int or not 0 < value < 1 << 62:
            raise ShapeError(f"{kind} needs {number} above 0")


def change_record(index: str, partition: int, first: int, last: int, rows: int) -> bytes:
    """The body of one change record: `rows` rows landed in a view from records first..last of a partition."""
    return cbor.dumps(
        {
            "v": 1,
            "index": index,
            "partition_id": partition,
            "from_offset": first,
            "to_offset": last,
            "rows": rows,
        }
    )
