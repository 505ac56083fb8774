"""Queries made of what queries are made of: every input is one that gets as far as SQL, unless it is refused.

What must hold, whatever the query:

* a refusal is the protocol's, in words of ours: no text of SQLite's about a statement;
* every cell has its column's kind, numbers are finite, counts agree;
* the pages of the query, walked by cursor, are the rows of the whole; a total is how many there are;
* the rows that meet a filter and those that meet its negation are all the rows.
"""

from copy import deepcopy
from typing import Any

from desk.stack.wire import agdx, cbor
from fuzz.whole import STREAM, Bytes, Stack, stack

FIELDS = (
    "n", "t", "deep", "flag", "ts", "message_type", "new", "missing", "a0", "c0", "seq", "count",
    "__laser_offset", "__laser_partition_id",
)  # fmt: skip
NUMERIC = ("n", "deep", "ts", "__laser_offset", "missing")
ODD_FIELDS = ("__laser_nothing", "", " n", "ä" * 200, "a\0")
OPERATORS = ("eq", "ne", "lt", "lte", "gt", "gte", "in", "contains", "prefix")
VALUES: tuple[tuple[str, Any], ...] = (
    ("long", 0), ("long", 1), ("long", -1), ("long", 3), ("long", 2**63 - 1), ("long", -(2**63)),
    ("int", 2), ("double", 0.5), ("double", -0.0), ("double", 1e308), ("double", 2.0**53),
    ("double", 9.223372036854775807e18), ("float", 0.25),
    ("decimal", {"unscaled": b"\x0f", "scale": 1}), ("decimal", {"unscaled": b"\x7f" * 16, "scale": 0}),
    ("decimal", {"unscaled": b"\x80" + bytes(15), "scale": 38}), ("date", 1), ("timestamp_micros", 5),
    ("timestamp_tz_micros", 1 << 62), ("time_micros", 7), ("boolean", True), ("boolean", False), ("boolean", 1),
    ("string", ""), ("string", "x"), ("string", "row 1"), ("string", "1"), ("string", "1e3"), ("string", " 1"),
    ("string", "0x10"), ("string", "%"), ("string", "ä"), ("string", "\0"), ("string", "'"), ("string", "true"),
    ("string", "9" * 400), ("string", "inf"), ("uuid", bytes(16)), ("null", None),
)  # fmt: skip
ODD_VALUES: tuple[tuple[str, Any], ...] = (
    ("string", 5), ("uuid", "x"), ("double", float("inf")), ("double", float("nan")), ("decimal", 3),
    ("decimal", {"unscaled": b"\x01", "scale": -999_990}), ("decimal", {"unscaled": bytes(17), "scale": 0}),
    ("long", 2**63), ("long", 10**5000), ("double", 10**5000),
    ("binary", b"x"), ("struct", []), ("long", "1"), ("string", b"\xff"),
)  # fmt: skip
FUNCTIONS = ("count", "count_distinct", "sum", "avg", "min", "max", "std_dev", "percentile")
WRONG: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 2**64, 2**70, 0.5, float("nan"), "", "x" * 300, b"", bytes(16), [], {}, [[]], {"a": 1}, [1],
    {"kind": "list", "value": []}, {"kind": "what"}, {1: 2}, "operational", "n", ["n", "n"],
)  # fmt: skip
FORKS = (None, None, None, f"stream:{STREAM}/f", f"stream:{STREAM}/g", f"stream:{STREAM}/none")
NUMBERS = (0, 1, 2, 7, 1000, 1 << 31, 1 << 32, (1 << 62) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
REFUSALS = frozenset(
    {"IndexNotFound", "ForkNotFound", "Unsupported", "TooLarge", "Backend", "ResourceLimit", "InvalidFork"}
)
WORDS = ("invalid query: ", "integer overflow")
"""How the text of a `Backend` refusal begins."""

Query = dict[str, Any]


def queries(data: bytes) -> None:
    """One query, checked against itself in other shapes; every eighth has one thing wrong."""
    source, made = Bytes(data), stack()
    made.begin()
    query = _query(source)
    if source.byte() % 8 == 7:
        _ask(made, _damaged(query, source))
        return
    whole = _ask(made, query)
    if whole is None:
        return
    page = query["page"]
    if "offset" in page and page["offset"] == 0 and page["limit"] >= 4:
        _walk(made, query, whole)
    if query.get("filter") is not None and not query.keys() & {"aggregate", "vector", "distinct"}:
        _halves(made, query)


def _query(source: Bytes) -> Query:
    parts: Query = {}
    flags = source.byte() & source.byte() | (source.byte() & source.byte()) << 8
    if flags & 1:
        parts["filter"] = _filter(source, 0)
    if flags & 2:
        parts["by_key"] = [
            {"field": _field(source), "value": _value(source)} for _ in range(1 + source.byte() % 2)
        ]
    if flags & 4:
        parts["message_type"] = source.pick(("x", "", "y"))
    if flags & 8:
        parts["time_range"] = sorted(
            (source.pick(NUMBERS), source.pick(NUMBERS)), reverse=source.byte() == 255
        )
    if flags & 16:
        parts["aggregate"] = _aggregate(source)
        if source.byte() % 2:
            parts["having"] = _filter(source, 2)
    elif flags & 32:
        fields = [_field(source) for _ in range(source.byte() % 4)]
        parts["select"] = {"fields": fields, "payload": source.byte() % 3 == 1}
    if flags & 64:
        parts["distinct"] = True
    if flags & 128:
        parts["vector"] = {
            "field": "embedding",
            "embedding": [
                source.pick((0.0, 1.0, -2.5, 1e-300, 1e149)) for _ in range(source.byte() % 5 or 2)
            ],
            "top_k": source.pick((3, 1, 0, 1 << 31, (1 << 32) - 1)),
        }
    if flags & 256:
        ways = ("asc", "desc")
        parts["order"] = [
            {"field": source.pick((*FIELDS, "window_start")), "dir": source.pick(ways)}
            for _ in range(source.byte() % 4)
        ]
    if flags & 512:
        parts["fork"] = source.pick(FORKS)
    if flags & 1024:
        parts["consistency"] = source.pick(("strong", "read_your_writes", "eventual"))
    page: Query = {
        "limit": source.pick((1000, 4, 7, 1, 5, 6, 3, 0)),
        "offset": source.pick((0, 0, 0, 0, 1, 5, 1 << 62, (1 << 64) - 1)),
    }
    if flags & 2048:
        page["want_total"] = True
    return {
        "execution_id": bytes(15) + b"\1",
        "target": {"kind": "operational", "index": f"stream:{STREAM}/views"},
        "deadline_micros": 1 << 62,
        **parts,
        "page": page,
    }


def _field(source: Bytes, usual: tuple[str, ...] = FIELDS) -> str:
    return source.pick(ODD_FIELDS if source.byte() == 255 else usual)


def _damaged(query: Query, source: Bytes) -> Query:
    """Something else somewhere inside; the deadline stays, so that it gets as far as it can."""
    holder: Any = query
    while True:
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        last = source.pick(places)
        if not (isinstance(holder[last], dict | list) and holder[last] and source.byte() % 4):
            break
        holder = holder[last]
    if source.byte() % 8 == 7:
        del holder[last]
    else:
        holder[last] = deepcopy(source.pick(WRONG))
    return {**query, "deadline_micros": 1 << 62}


def _value(source: Bytes) -> Any:
    choice = source.byte()
    if choice >= 253:
        return _number(source)
    kind, value = source.pick(ODD_VALUES if choice >= 250 else VALUES)
    return {"kind": kind} if kind == "null" else {"kind": kind, "value": value}


def _number(source: Bytes) -> Any:
    """A decimal of any scale, or an integer of any size: many are beyond what the protocol has."""
    data = source.take(source.byte() % 20)
    if source.byte() % 4:
        scale = source.pick((0, 1, 9, 37, 38, 39, -1, -38, -999_990, 1 << 31, 1 << 63, -(1 << 63)))
        return {"kind": "decimal", "value": {"unscaled": data, "scale": scale}}
    kind = source.pick(("long", "int", "double", "date", "time_micros", "timestamp_micros"))
    return {"kind": kind, "value": int.from_bytes(data, "little", signed=True) ** source.pick((1, 2, 300))}


def _filter(source: Bytes, depth: int) -> Any:
    choice = source.byte() % 8
    if depth < 4 and choice < 2:
        return {("all", "any")[choice]: [_filter(source, depth + 1) for _ in range(1 + source.byte() % 3)]}
    if depth < 4 and choice == 2:
        return {"not": _filter(source, depth + 1)}
    field, op = _field(source), source.pick(OPERATORS)
    value = _value(source)
    if op == "in":
        value = {"kind": "list", "value": [value, *(_value(source) for _ in range(source.byte() % 3))]}
    return {"pred": {"field": field, "op": op, "value": value}}


def _aggregate(source: Bytes) -> Query:
    calls = []
    for number in range(1 + source.byte() % 3):
        func = source.pick(FUNCTIONS)
        call: Query = {
            "func": func,
            "alias": source.pick((f"a{number}", f"a{number}", f"a{number}", "count")),
        }
        if func != "count" or source.byte() % 2:
            any_kind = func in ("count", "count_distinct", "min", "max")
            call["field"] = _field(source, FIELDS if any_kind else NUMERIC)
        if func == "percentile":
            call["arg"] = source.pick((0.5, 0, 1, 0.999, 0.1))
        calls.append(call)
    aggregate: Query = {"funcs": calls, "group_by": [_field(source) for _ in range(source.byte() % 3)]}
    if source.byte() % 4 == 1:
        aggregate["window"] = {"field": _field(source, NUMERIC), "every_micros": source.pick(NUMBERS)}
    return aggregate


def _ask(made: Stack, query: Query) -> Query | None:
    """The page, or None for a refusal in order."""
    reply = cbor.loads(made.ask(agdx.QUERY, cbor.dumps({"v": 1, "query": query})))
    if reply.keys() == {"code", "message"}:
        assert reply["code"] == "invalid_argument", reply
        return None
    if "Err" in reply:
        ((kind, value),) = reply["Err"].items()
        assert kind in REFUSALS, reply
        assert kind != "Backend" or value.startswith(WORDS), reply
        return None
    page = reply["Ok"]
    _check(query, page)
    return page


def _check(query: Query, page: Query) -> None:
    """What every client checks of a page, and more."""
    kinds = [field["field_type"]["kind"] for field in page["fields"]]
    assert len({field["name"] for field in page["fields"]}) == len(kinds) > 0
    for row in page["rows"]:
        assert len(row["values"]) == len(kinds)
        for cell, kind in zip(row["values"], kinds, strict=True):
            assert cell["kind"] in ("null", kind), (cell, kind)
            if cell["kind"] == "double":
                assert cell["value"] - cell["value"] == 0, "not a finite number"
        assert ("score" in row) == (
            query.get("vector") is not None and not query.get("distinct") and not query.get("aggregate")
        )
    assert len(page["rows"]) == page["context"]["row_count"] <= query["page"]["limit"]
    assert page["page"]["has_more"] == ("next_cursor" in page["page"])
    assert page["page"].get("total", len(page["rows"])) >= len(page["rows"])


def _walk(made: Stack, query: Query, first: Query) -> None:
    """Page after page is the whole, and the total counts it."""
    whole = _ask(made, {**query, "page": {"limit": 1000, "offset": 0, "want_total": True}})
    assert whole is not None
    rows, page = list(first["rows"]), first
    while page["page"]["has_more"]:
        cursor = page["page"]["next_cursor"]
        following = _ask(made, {**query, "page": {"limit": query["page"]["limit"], "cursor": cursor}})
        assert following is not None and following["rows"], "a page after the last one"
        rows += following["rows"]
        page = following
    assert _plain(rows) == _plain(whole["rows"]), "pages differ from the whole"
    assert whole["page"]["total"] == len(rows), "the total is another one"


def _halves(made: Stack, query: Query) -> None:
    """Rows that meet the filter, and rows that do not, are all."""

    def count(condition: Any) -> int | None:
        counted = {k: v for k, v in query.items() if k not in ("order", "select", "filter")}
        counted |= {
            "aggregate": {"funcs": [{"func": "count", "alias": "rows"}]},
            "page": {"limit": 1, "offset": 0},
        }
        page = _ask(made, {**counted, **({"filter": condition} if condition else {})})
        return None if page is None else page["rows"][0]["values"][0]["value"]

    condition = query["filter"]
    those, others, everything = count(condition), count({"not": condition}), count(None)
    if None not in (those, others, everything):
        assert those + others == everything, (those, others, everything)


def _plain(rows: list[Query]) -> list[bytes]:
    return [cbor.dumps(row) for row in rows]
