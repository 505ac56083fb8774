"""A record's body as JSON values: by its content type, its writer schema, inside an AGDX envelope or not."""

import json
from collections.abc import Callable
from typing import Any

from desk.stack.managed.schemas import Compiled, Undecodable
from desk.stack.wire import cbor
from desk.stack.wire.iggy import Record
from desk.stack.wire.registry import CONTENT_TYPE_CODES

CONTENT_TYPE, SCHEMA_ID, ENVELOPE = "agdx.ct", "agdx.sid", "agdx.av"

Schemas = Callable[[int], Compiled | None]

# NaN and Infinity are no JSON; taken as null here, as the SDK writes them
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
parse_json = _DECODER.decode
scan_json = _DECODER.scan_once  # (text, position) -> (value, end); StopIteration where there is no value


def header_text(record: Record, name: str) -> str | None:
    """A header as text, numbers too."""
    found = record.headers.get(name)
    if found is None:
        return None
    kind, raw = found
    if kind == "string":
        return raw.decode("utf-8", "replace")
    number = header_number(record, name)
    return None if number is None else str(number)


def header_number(record: Record, name: str) -> int | None:
    """A header of an integer kind (or boolean, or digits) as a number."""
    found = record.headers.get(name)
    if found is None:
        return None
    kind, raw = found
    if kind[0] in "ui":
        return int.from_bytes(raw, "little", signed=kind[0] == "i")
    if kind == "bool":
        return int(raw != b"\x00")
    try:
        return int(raw) if kind == "string" else None
    except ValueError:
        return None


def decoded(record: Record, declared: str, schemas: Schemas) -> Any:
    """The body as JSON values, None when it is only bytes.

    `declared` is the projection's content type, used when the record names none. Raises Undecodable when the
    body is not what its type or schema says; a type this stack does not know is only bytes.
    """
    code = header_number(record, CONTENT_TYPE)
    kind = declared if code is None else CONTENT_TYPE_CODES.get(code, "any")
    kind = declared if kind in ("any", "raw") and declared not in ("any", "raw") else kind
    body = record.payload
    if ENVELOPE in record.headers:
        body = _enveloped(body)
    schema_id = header_number(record, SCHEMA_ID)
    schema = schemas(schema_id) if schema_id is not None and 0 <= schema_id < 1 << 32 else None
    if kind in ("avro", "protobuf"):
        if schema is None:
            raise Undecodable(
                f"no writer schema {'named' if schema_id is None else schema_id} for an {kind} body"
            )
        return schema.decode(body)
    value = _self_describing(kind, body)
    if schema is not None:
        if schema.kind != "json_schema":
            return schema.decode(body)
        schema.check(value)
    return value


def _self_describing(kind: str, body: bytes) -> Any:
    try:
        if kind == "cbor":
            return cbor.loads(body)
        if kind in ("json", "any", "raw"):
            return parse_json(body.decode())
    except (ValueError, RecursionError):
        if kind in ("json", "cbor"):
            raise Undecodable(f"the body is not {kind.upper()}") from None
        return None
    if kind == "msgpack":
        return _msgpack(body)
    if kind in ("bson", "arrow"):
        raise Undecodable(f"{kind} bodies are not decoded here")
    return None


def _msgpack(body: bytes) -> Any:
    try:
        import msgpack
    except ModuleNotFoundError:
        raise Undecodable("msgpack bodies are not decoded here") from None
    try:
        return msgpack.unpackb(body, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        raise Undecodable("the body is not MessagePack") from None


def _enveloped(payload: bytes) -> bytes:
    """The body inside an AGDX envelope."""
    try:
        body = cbor.loads(payload)["body"]
        return bytes(body) if isinstance(body, bytes | list) else b""
    except (ValueError, KeyError, TypeError):
        raise Undecodable("an envelope without a body") from None
