"""AGDX, the managed band's wire: command codes, feature bits, limits, frames, result envelopes.

Every managed call is an Iggy request whose command code is 1,000,000 or more and whose body is CBOR.

    mutation      {v: 1, operation_id: u128 != 0, payload: bytes}            payload = the surface request
    barrier read  {v: 1, read: bytes, min_position?, log_head?, min_sessions?}   or the bare surface request
    plain read    the bare surface request
    reply         {v: 1, frontier: {kv?, fork?, graph?, sessions?}, reply: bytes}   of the first two
    refusal       {code: text, message: text}                                 of the band itself, never wrapped
    surface reply {"Ok": outcome} or {"Err": error}
"""

from collections.abc import Mapping
from enum import IntFlag
from functools import lru_cache
from typing import Any, NamedTuple

from desk.stack.wire import cbor
from desk.stack.wire.shape import BOOL, BYTES, LIST, MAP, U32, U128, Shape, ShapeError, check, optional

BASE = 1_000_000
HELLO, BACKEND_HELLO, SET_CLIENT_METADATA, LIST_CLIENT_METADATA = range(BASE, BASE + 4)
BATCH, CHECKPOINT = BASE + 20, BASE + 21
CONTROL_PUBLISH = BASE + 108
QUERY, QUERY_PAGE, QUERY_CANCEL, QUERY_STATUS = range(BASE + 200, BASE + 204)
GET_PROJECTION, LIST_PROJECTIONS = range(BASE + 210, BASE + 212)
GET_SCHEMA, LIST_SCHEMAS, REGISTER_SCHEMA, DECODE_RECORD = range(BASE + 220, BASE + 224)
(
    KV_GET, KV_SET, KV_SCAN, KV_DELETE, KV_DELETE_MANY, KV_NAMESPACES, KV_CAS, KV_EXISTS, KV_EXPIRE, KV_PATCH,
    KV_LEASE, KV_RELEASE, KV_CAS_FENCED, KV_COPY, KV_MOVE, KV_LEASE_RENEW,
) = range(BASE + 300, BASE + 316)  # fmt: skip
FORK_CREATE, FORK_DELETE, FORK_PROMOTE, FORK_LIST, FORK_PUT = range(BASE + 400, BASE + 405)
GRAPH_QUERY, GRAPH_UPSERT, GRAPH_NEIGHBORS = range(BASE + 600, BASE + 603)
(
    SESSION_GET, SESSION_LIST, SESSION_EVENTS, SESSION_STATE, SESSION_LINKS, SESSION_SOURCES, SESSION_CHANGES,
) = range(BASE + 710, BASE + 717)  # fmt: skip

MUTATION_CODES = frozenset(
    {
        BATCH, CHECKPOINT, CONTROL_PUBLISH, KV_SET, KV_DELETE, KV_DELETE_MANY, KV_CAS, KV_EXPIRE, KV_PATCH,
        KV_LEASE, KV_RELEASE, KV_CAS_FENCED, KV_COPY, KV_MOVE, KV_LEASE_RENEW, FORK_CREATE, FORK_DELETE,
        FORK_PROMOTE, FORK_PUT, GRAPH_UPSERT,
    }
)  # fmt: skip
"""Codes that must come in a mutation frame, served or not."""

OPS_STREAM = "_agdx"
CONTROL_TOPIC, CHANGES_TOPIC, DLQ_TOPIC = "control.commands", "changes", "dlq"
KV_TOPIC, FORK_TOPIC, GRAPH_TOPIC = "kv.mutations", "fork.mutations", "graph.mutations"
CHECKPOINT_TOPIC = "checkpoint.mutations"

MAX_FRAME_BYTES = 64 << 20
MAX_KEY_BYTES, MAX_VALUE_BYTES, MAX_NAMESPACE_BYTES = 512, 8 << 20, 128
MAX_SCAN_LIMIT, DEFAULT_SCAN_LIMIT = 1000, 100
MAX_PAGE_SIZE = 1000
MIN_LEASE_TTL_US, MAX_LEASE_TTL_US, MAX_HOLDER_ID_BYTES = 1_000_000, 300_000_000, 128
MAX_BATCH_OPS, MAX_BATCH_BYTES = 64, 64 << 20
MAX_CLIENT_METADATA_BYTES = 64 << 10
MAX_KEPT_BARRIERS = 256  # bytes of a read's barriers up to which the decoded ones are kept for the next read


class Feature(IntFlag):
    """Bits of `versions.features` in hello."""

    KV_CAS = 1 << 0
    READ_YOUR_WRITES = 1 << 1
    STRONG_CONSISTENCY = 1 << 2
    KV_CAS_FENCED = 1 << 3
    KEYWORD_SEARCH = 1 << 5
    WATCH = 1 << 6
    AUTHZ = 1 << 7
    DESTINATIONS = 1 << 8
    KV_FENCED_LEASES = 1 << 9
    CONSUMER_FILTERS = 1 << 10
    GROUP_POLICY_READS = 1 << 11
    SESSIONS = 1 << 12
    STREAM_TENANCY = 1 << 13


class MutationFrame(NamedTuple):
    """A mutation as it came: the identity its outcome is remembered by, and the surface request's bytes."""

    operation_id: int
    payload: bytes


class ReadFrame(NamedTuple):
    """A read with its barriers; positions are maps as the wire has them."""

    read: bytes
    min_position: Mapping[str, int] | None = None
    log_head: bool = False
    min_sessions: tuple[Mapping[str, Any], ...] = ()


_MUTATION: Shape = {"v": U32, "operation_id": U128, "payload": BYTES}
_BARRIERS: Shape = {"min_position": optional(MAP), "log_head": optional(BOOL), "min_sessions": optional(LIST)}
_READ: Shape = {"v": U32, "read": BYTES, **_BARRIERS}
Barriers = tuple[Mapping[str, int] | None, bool, tuple[Mapping[str, Any], ...]]


# A frame as the SDK writes it is read without the general decoder: all but its payload is the same bytes.
_MUTATION_HEAD = b"\xa3\x61v\x01\x6coperation_id\xc2\x50"  # then 16 bytes of identity (a time comes first)
_MUTATION_PAYLOAD = b"\x67payload"
_MUTATION_ID_END = len(_MUTATION_HEAD) + 16
_MUTATION_REST = _MUTATION_ID_END + len(_MUTATION_PAYLOAD)
_READ_HEAD = b"\x61v\x01\x64read"  # behind the head of a map


def mutation_frame(body: bytes) -> MutationFrame:
    """The frame around a mutation; ShapeError or DecodeError when there is none."""
    if body.startswith(_MUTATION_HEAD) and body.startswith(_MUTATION_PAYLOAD, _MUTATION_ID_END):
        span = cbor.bytes_at(body, _MUTATION_REST)
        identity = int.from_bytes(body[len(_MUTATION_HEAD) : _MUTATION_ID_END], "big")
        if span and span.stop == len(body) and identity:
            return MutationFrame(identity, body[span])
    frame = check(cbor.loads(body), _MUTATION)
    if frame["v"] != 1:
        raise ShapeError("unsupported managed request version")
    if not frame["operation_id"]:
        raise ShapeError("managed request operation id must not be zero")
    return MutationFrame(frame["operation_id"], frame["payload"])


def read_frame(body: bytes) -> ReadFrame | dict[str, Any]:
    """The frame around a barrier read, or the bare request already decoded when there is no frame."""
    if body.startswith(_READ_HEAD, 1) and 0xA2 <= body[0] <= 0xA5:
        span = cbor.bytes_at(body, 1 + len(_READ_HEAD))
        if span and len(body) - span.stop <= MAX_KEPT_BARRIERS:
            # the barriers are a map of their own with two entries less; a reader repeats its own for a while
            return ReadFrame(body[span], *_barriers(bytes((body[0] - 2,)) + body[span.stop :]))
    frame = cbor.loads(body)
    if type(frame) is not dict or "read" not in frame or not frame.keys() <= _READ.keys():
        return frame
    check(frame, _READ)
    if frame["v"] != 1:
        raise ShapeError("unsupported managed read version")
    return ReadFrame(frame["read"], *_checked(frame))


@lru_cache(maxsize=256)
def _barriers(encoded: bytes) -> Barriers:
    """The barriers of a read frame from the rest of its map."""
    rest = cbor.loads(encoded)
    if type(rest) is not dict or not rest.keys() <= _BARRIERS.keys():
        raise ShapeError("a read frame holds nothing but barriers")
    return _checked(check(rest, _BARRIERS))


def _checked(frame: Mapping[str, Any]) -> Barriers:
    return frame.get("min_position"), frame.get("log_head", False), tuple(frame.get("min_sessions", ()))


_REPLY_HEAD = bytes([0xA3]) + cbor.dumps("v") + cbor.dumps(1) + cbor.dumps("frontier")
_REPLY_BODY = cbor.dumps("reply")


def reply_frame(reply: bytes, frontier: bytes) -> bytes:
    """A surface reply with the positions it reflects, a map already encoded (it seldom changes)."""
    return b"".join((_REPLY_HEAD, frontier, _REPLY_BODY, cbor.byte_head(len(reply)), reply))


def refusal(code: str, message: str) -> bytes:
    """A CommandError: a result code's snake_case name and one sentence."""
    return cbor.dumps({"code": code, "message": message})
