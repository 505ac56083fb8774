"""Queries: what one may say, checked before anything is compiled; and the names replies have of their own.

    query   {v, query: {execution_id, target: {kind: "operational", index}, deadline_micros, by_key?, message_type?,
             time_range?, filter?, vector?, order?, page, aggregate?, having?, distinct?, select, fork?, consistency?}}
    page    {v, execution_id, cursor, deadline_micros}     the next page of a query the server still knows
    cancel, status  {v, execution_id}                      {execution_id, state, started_at_micros, ...}

    filter  {all: [filter]} | {any: [filter]} | {not: filter} | {pred: {field, op, value}}
    value   {kind, value}: a typed value; null has no `value`

Clients of the SDK hold these rules already; a query that breaks one is answered with one sentence.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from desk.stack.wire import agdx
from desk.stack.wire.agdx import MAX_PAGE_SIZE
from desk.stack.wire.shape import ANY, BOOL, ID16, LIST, MAP, TEXT, U32, U64, Shape, check, optional

MAX_FIELDS, MAX_PREDICATES, MAX_DEPTH, MAX_CALLS = 4096, 4096, 64, 1024
MAX_NAME_BYTES, MAX_CURSOR_BYTES, MAX_DIMENSIONS = 255, 512, 65_536
MAX_LIST = 4096  # values after one `in`
MAX_DECIMAL_BYTES, MAX_DECIMAL_SCALE = 16, 38
LARGEST_IN_VECTOR = 1e150  # squares of larger numbers overflow
BOOLEAN, LONG, DOUBLE, STRING, BINARY = "boolean", "long", "double", "string", "binary"
"""The kinds of typed values that replies use."""
OFFSET, PARTITION, PAYLOAD = "__laser_offset", "__laser_partition_id", "__laser_original_payload"
RESERVED_IDS = {PARTITION: 2_000_000_005, OFFSET: 2_000_000_006, PAYLOAD: 2_000_000_012}
"""Columns of the protocol itself, and the field ids they must have."""
TIME, MESSAGE_TYPE, WINDOW_START = "ts", "message_type", "window_start"
FUNCTIONS = frozenset({"count", "count_distinct", "sum", "avg", "min", "max", "percentile", "std_dev"})
COMPARISONS = frozenset({"eq", "ne", "lt", "lte", "gt", "gte", "in", "contains", "prefix"})
LEVELS = frozenset({"eventual", "read_your_writes", "strong"})
SCALARS = frozenset(
    {
        "null", "boolean", "int", "long", "float", "double", "decimal", "date", "time_micros",
        "timestamp_micros", "timestamp_tz_micros", "string", "uuid",
    }
)  # fmt: skip

QUERY: Shape = {
    "execution_id": ID16,
    "target": MAP,
    "deadline_micros": U64,
    "by_key": optional(LIST),
    "message_type": optional(TEXT),
    "time_range": optional(LIST),
    "filter": optional(ANY),
    "vector": optional(MAP),
    "text": optional(ANY),
    "order": optional(LIST),
    "page": MAP,
    "aggregate": optional(MAP),
    "having": optional(ANY),
    "distinct": optional(BOOL),
    "select": optional(MAP),
    "fork": optional(TEXT),
    "raw_sql": optional(ANY),
    "consistency": optional(TEXT),
}
PAGE: Shape = {"limit": U32, "offset": optional(U64), "cursor": optional(TEXT), "want_total": optional(BOOL)}
SELECT: Shape = {"fields": optional(LIST), "payload": optional(BOOL)}
AGGREGATE: Shape = {"group_by": optional(LIST), "funcs": LIST, "window": optional(MAP)}
CALL: Shape = {"func": TEXT, "field": optional(TEXT), "arg": optional(ANY), "alias": TEXT}
WINDOW: Shape = {"field": TEXT, "every_micros": U64}
VECTOR: Shape = {"field": TEXT, "embedding": LIST, "top_k": U32}
PREDICATE: Shape = {"field": TEXT, "op": TEXT, "value": MAP}
KEY: Shape = {"field": TEXT, "value": MAP}
SORT: Shape = {"field": TEXT, "dir": optional(TEXT)}
REQUESTS: Mapping[int, Shape] = {
    agdx.QUERY: {"v": U32, "query": MAP},
    agdx.QUERY_PAGE: {"v": U32, "execution_id": ID16, "cursor": TEXT, "deadline_micros": U64},
    agdx.QUERY_CANCEL: {"v": U32, "execution_id": ID16},
    agdx.QUERY_STATUS: {"v": U32, "execution_id": ID16},
}


class QueryFault(Exception):
    """A query that cannot be answered; `value` is the protocol's QueryError."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(str(value))
        self.value = value


def invalid(text: str) -> QueryFault:
    """A query that says something the protocol does not allow."""
    return QueryFault({"Backend": f"invalid query: {text}"})


def unsupported(text: str) -> QueryFault:
    return QueryFault({"Unsupported": text})


def checked(query: Any) -> dict[str, Any]:
    """The query with every nested part checked and `page`, `select` filled in.

    Raises QueryFault, or ShapeError for parts of the wrong type.
    """
    query = check(query, QUERY)
    _served(query)
    page = check(query["page"], PAGE)
    if not 1 <= page["limit"] <= MAX_PAGE_SIZE:
        raise QueryFault({"TooLarge": {"what": "limit", "size": page["limit"], "cap": MAX_PAGE_SIZE}})
    cursor = page.get("cursor")
    if cursor is not None and (
        page.get("offset") is not None or not 1 <= len(cursor.encode()) <= MAX_CURSOR_BYTES
    ):
        raise invalid("a page takes either an offset or a cursor of 1 to 512 bytes")
    check(query.setdefault("select", {}), SELECT)
    for key in _sized("exact matches", query.get("by_key")):
        name("key field", check(key, KEY)["field"])
        literal(key["value"])
    for sort in _sized("sort fields", query.get("order")):
        name("sort field", check(sort, SORT)["field"])
        if sort.setdefault("dir", "asc") not in ("asc", "desc"):
            raise invalid("a sort direction is asc or desc")
    for field in _sized("selected fields", query["select"].get("fields")):
        name("selected field", field)
    span = query.get("time_range")
    if span is not None and (len(span) != 2 or not all(type(x) is int for x in span) or span[0] >= span[1]):
        raise invalid("a time range is two times, the first before the second")
    for part in ("filter", "having"):
        if query.get(part) is not None:
            _filter(query[part], 1, [0])
    _aggregate(query)
    _vector(query.get("vector"))
    if query.get("consistency", "eventual") not in LEVELS:
        raise invalid("an unknown consistency level")
    return query


def name(what: str, text: Any) -> str:
    """A field's name: 1 to 255 bytes, trimmed, no control characters."""
    if not valid_name(text):
        raise invalid(f"a {what} must be 1 to 255 bytes, trimmed, without control characters")
    return text


def valid_name(text: Any) -> bool:
    return (
        type(text) is str
        and 0 < len(text.encode("utf-8", "replace")) <= MAX_NAME_BYTES
        and text.strip() == text
        and not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text)
    )


def is_vector(value: Any) -> bool:
    """A list of finite numbers of sane size, at least one."""
    return (
        type(value) is list
        and len(value) > 0
        and all(type(x) in (int, float) and -LARGEST_IN_VECTOR <= x <= LARGEST_IN_VECTOR for x in value)
    )


def literal(value: Any, *, lists: bool = False) -> None:
    """A typed value that a predicate may compare with."""
    kind = value.get("kind") if type(value) is dict else None
    if kind == "list" and lists:
        if type(value.get("value")) is not list or not value["value"]:
            raise invalid("`in` takes a list that is not empty")
        if len(value["value"]) > MAX_LIST:
            raise invalid(f"`in` takes a list of at most {MAX_LIST} values")
        for item in value["value"]:
            literal(item)
    elif type(kind) is not str or kind not in SCALARS:
        raise invalid(f"a predicate cannot compare with a {kind or 'value without a kind'}")
    elif kind != "null" and "value" not in value:
        raise invalid(f"a {kind} without its value")
    elif kind == "decimal":
        _decimal(value["value"])
    elif type(value.get("value")) is int and not -(1 << 63) <= value["value"] < 1 << 63:
        raise invalid("an integer beyond 64 bits")


def _decimal(value: Any) -> None:
    """Small enough to be written out: 10^scale is made on the way."""
    unscaled, scale = (value.get("unscaled"), value.get("scale")) if type(value) is dict else (None, None)
    if (
        type(unscaled) not in (bytes, list)
        or not 1 <= len(unscaled) <= MAX_DECIMAL_BYTES
        or type(scale) is not int
        or not 0 <= scale <= MAX_DECIMAL_SCALE
    ):
        raise invalid(
            f"a decimal has 1 to {MAX_DECIMAL_BYTES} unscaled bytes and a scale from 0 to {MAX_DECIMAL_SCALE}"
        )


def _served(query: Mapping[str, Any]) -> None:
    if query["target"].get("kind") != "operational":
        raise unsupported("only operational views are served, no lakehouse")
    name("view name", query["target"].get("index"))
    if query.get("raw_sql") is not None:
        raise unsupported("raw SQL is not served")
    if query.get("text") is not None:
        raise unsupported("text search is not served")


def _sized(what: str, items: list[Any] | None) -> Iterable[Any]:
    if items and len(items) > MAX_FIELDS:
        raise invalid(f"more than {MAX_FIELDS} {what}")
    return items or ()


def _filter(node: Any, depth: int, seen: list[int]) -> None:
    seen[0] += 1
    if seen[0] > MAX_PREDICATES or depth > MAX_DEPTH:
        raise invalid(f"a filter has at most {MAX_PREDICATES} nodes and depth {MAX_DEPTH}")
    tag, body = next(iter(node.items())) if type(node) is dict and len(node) == 1 else (None, None)
    if tag in ("all", "any"):
        if type(body) is not list or not body:
            raise invalid(f"`{tag}` takes a list that is not empty")
        for child in body:
            _filter(child, depth + 1, seen)
    elif tag == "not":
        _filter(body, depth + 1, seen)
    elif tag == "pred":
        check(body, PREDICATE)
        name("predicate field", body["field"])
        if body["op"] not in COMPARISONS:
            raise unsupported(f"the comparison `{body['op']}` is not served")
        literal(body["value"], lists=body["op"] == "in")
        if body["op"] == "in" and body["value"]["kind"] != "list":
            raise invalid("`in` takes a list that is not empty")
        if body["op"] == "prefix" and body["value"]["kind"] != "string":
            raise invalid("`prefix` takes a string")
    else:
        raise invalid("a filter is one of all, any, not, pred")


def _aggregate(query: Mapping[str, Any]) -> None:
    aggregate = query.get("aggregate")
    if aggregate is None:
        if query.get("having") is not None:
            raise invalid("`having` needs an aggregate")
        return
    check(aggregate, AGGREGATE)
    if query["select"].get("fields") or query["select"].get("payload"):
        raise invalid("an aggregate selects no rows")
    if not 1 <= len(aggregate["funcs"]) <= MAX_CALLS:
        raise invalid(f"an aggregate has 1 to {MAX_CALLS} functions")
    names = [name("group field", field) for field in _sized("group fields", aggregate.get("group_by"))]
    for call in aggregate["funcs"]:
        check(call, CALL)
        names.append(name("aggregate alias", call["alias"]))
        func, field, arg = call["func"], call.get("field"), call.get("arg")
        if func not in FUNCTIONS:
            raise unsupported(f"the aggregate `{func}` is not served")
        if field is not None:
            name("aggregate field", field)
        if func == "percentile":
            if field is None or type(arg) not in (int, float) or not 0 <= arg <= 1:
                raise invalid("a percentile takes a field and a fraction from 0 to 1")
        elif arg is not None or (field is None and func != "count"):
            raise invalid(f"`{func}` takes a field and nothing else")
    if aggregate.get("window") is not None:
        check(aggregate["window"], WINDOW)
        names.append("window_start")
        name("window field", aggregate["window"]["field"])
        if not 0 < aggregate["window"]["every_micros"] < 1 << 63:
            raise invalid("a window is at least 1 and less than 2^63 microseconds long")
    if len(set(names)) < len(names):
        raise invalid("an aggregate names two of its columns alike")


def _vector(vector: Any) -> None:
    if vector is None:
        return
    check(vector, VECTOR)
    numbers = vector["embedding"]
    if len(numbers) > MAX_DIMENSIONS or not is_vector(numbers):
        raise invalid(f"an embedding has 1 to {MAX_DIMENSIONS} finite numbers")
    if not vector["top_k"]:
        raise invalid("top_k is at least 1")
