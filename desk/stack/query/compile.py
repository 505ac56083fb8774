"""A checked query and a snapshot in, one SQL statement with bound parameters out. Pure: no database here.

Names that users chose never get into the text: fields become c<n>, results a<n>.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desk.stack.query.filters import Bindings, Scope, Term, condition, predicate
from desk.stack.query.kinds import I64_MAX
from desk.stack.query.relation import Rows, Snapshot, listed, shown_kind, where
from desk.stack.query.vectors import unit_vector
from desk.stack.wire.query import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    LONG,
    MESSAGE_TYPE,
    OFFSET,
    PARTITION,
    PAYLOAD,
    RESERVED_IDS,
    STRING,
    TIME,
    WINDOW_START,
    invalid,
    unsupported,
)
from desk.stack.wire.query_reply import Output


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of the result: by position, or (rows without an order) after a sequence number."""

    limit: int
    skip: int = 0
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL that yields one tuple a row: [seq when keyed], the columns, [score when scored]."""

    sql: str
    parameters: Sequence[Any]
    columns: Sequence[Output]
    keyed: bool
    scored: bool
    total: tuple[str, Sequence[Any]] | None  # counts all rows of the result


def compiled(query: Mapping[str, Any], snapshot: Snapshot, page: Page) -> Statement:
    """The statement of one page, which fetches one row more than the page holds."""
    bind = Bindings()
    rows = Rows(snapshot, bind)
    conditions = _conditions(query, rows, bind)
    build = _aggregated if query.get("aggregate") is not None else _selected
    return build(query, snapshot, page, rows, conditions, bind)


def _conditions(query: Mapping[str, Any], rows: Rows, bind: Bindings) -> list[str]:
    parts = [predicate(key["field"], "eq", key["value"], rows, bind) for key in query.get("by_key") or ()]
    if query.get("message_type") is not None:
        wanted = {"kind": "string", "value": query["message_type"]}
        parts.append(predicate(MESSAGE_TYPE, "eq", wanted, rows, bind))
    if query.get("time_range") is not None:
        first, last = (min(edge, I64_MAX) for edge in query["time_range"])
        term = _number(rows(TIME), TIME, "a time range")
        parts.append(f"{term.sql} BETWEEN {bind(first)} AND {bind(last)}")
    if query.get("filter") is not None:
        parts.append(condition(query["filter"], rows, bind))
    return parts


def _from(query: Mapping[str, Any], rows: Rows, conditions: Sequence[str], bind: Bindings) -> tuple[str, str]:
    """(FROM and WHERE, the score expression or "") once all terms are known."""
    vector = query.get("vector")
    if vector is None:
        table, live = rows.source()
        return f"FROM {table}{where([*live, *conditions])}", ""
    wanted = unit_vector(vector["embedding"])
    stored = rows.vector
    table, live = rows.source()
    nearest = (
        f"SELECT r.*, distance({stored}, {bind(wanted)}) AS score FROM {table}"
        f"{where([*live, *conditions, 'score IS NOT NULL'])} ORDER BY score, r.seq LIMIT {bind(vector['top_k'])}"
    )
    return f"FROM ({nearest}) AS r", "r.score"


def _selected(
    query: Mapping[str, Any],
    snapshot: Snapshot,
    page: Page,
    rows: Rows,
    conditions: list[str],
    bind: Bindings,
) -> Statement:
    names, distinct = _names(query, snapshot), bool(query.get("distinct"))
    columns, terms = [], []
    for field in names:
        term = Term(rows.payload, BINARY) if field == PAYLOAD else rows(field)
        terms.append(term.sql)
        column = snapshot.view.columns.get(field)
        columns.append(Output(field, shown_kind(term.kind or rows.kind(column)), _doc(column)))
    order = [(rows(sort["field"]).sql, sort["dir"]) for sort in query.get("order") or ()]
    keyed = not order and not distinct and query.get("vector") is None
    body, score = _from(query, rows, conditions, bind)
    if distinct:
        wanted = ", ".join(terms)
        keys = [f"{'min' if way == 'asc' else 'max'}({sql}) {way}" for sql, way in order]
        body += f" GROUP BY {wanted}"
        keys.append(f"min({score or 'r.seq'})")
        score = ""
    else:
        keys = [f"{sql} {way}" for sql, way in order] or ([score] if score else [])
        keys.append("r.seq")
    picked = ", ".join([*(["r.seq"] if keyed else []), *terms, *([score] if score else [])])
    total = None
    if query["page"].get("want_total"):
        total = f"SELECT count(*) FROM (SELECT 1 {body})", tuple(bind.values)
    if keyed and page.after is not None:
        body, _ = _from(query, rows, [*conditions, f"r.seq > {bind(page.after)}"], bind)
    ordered = f"ORDER BY {', '.join(keys)}"
    sql = f"SELECT {picked} {body} {ordered} {_limit(page, bind)}"
    if order and PAYLOAD in names and not score and not snapshot.layers:
        # sort first, then fetch the payloads of one page: none goes through the sorter
        chosen = f"SELECT r.seq AS seq {body} {ordered} {_limit(page, bind)}"
        table = f"({chosen}) AS page CROSS JOIN {snapshot.view.table} AS r ON r.seq = page.seq"
        sql = f"SELECT {picked} FROM {table} {ordered}"
    return Statement(sql, bind.values, columns, keyed, bool(score), total)


def _names(query: Mapping[str, Any], snapshot: Snapshot) -> list[str]:
    """The fields of the reply, each once."""
    select, distinct = query["select"], query.get("distinct")
    names = list(dict.fromkeys(select.get("fields") or ()))
    if not names:
        names = list(listed(snapshot))
        if not distinct or not names:
            names += [PARTITION, OFFSET]
    if select.get("payload") and PAYLOAD not in names:
        names.append(PAYLOAD)
    if distinct and PAYLOAD in names:
        raise unsupported("distinct rows carry no payload")
    for field in names:
        if field.startswith("__laser_") and field not in RESERVED_IDS:
            raise unsupported(f"the column `{field}` is not served")
    return names


def _aggregated(
    query: Mapping[str, Any],
    snapshot: Snapshot,
    page: Page,
    rows: Rows,
    conditions: list[str],
    bind: Bindings,
) -> Statement:
    aggregate = query["aggregate"]
    keys: list[tuple[str, Term]] = [(field, rows(field)) for field in aggregate.get("group_by") or ()]
    if aggregate.get("window") is not None:
        keys.append((WINDOW_START, _window(aggregate["window"], rows, bind)))
    results = [*keys, *((call["alias"], _call(call, rows, bind)) for call in aggregate["funcs"])]
    fields = [*(name for name, _ in keys), *(call.get("field") for call in aggregate["funcs"])]
    columns = [
        Output(name, shown_kind(term.kind), _doc(snapshot.view.columns.get(field)))
        for (name, term), field in zip(results, fields, strict=True)
    ]
    body, _ = _from(query, rows, conditions, bind)
    picked = ", ".join(f"{term.sql} AS a{place}" for place, (_, term) in enumerate(results))
    grouped = f"SELECT {picked} {body}"
    if keys:
        grouped += " GROUP BY " + ", ".join(f"a{place}" for place in range(len(keys)))
    scope = _results(results)
    sql = f"SELECT * FROM ({grouped}) AS g"
    if query.get("having") is not None:
        sql += f" WHERE {condition(query['having'], scope, bind)}"
    total = None
    if query["page"].get("want_total"):
        total = f"SELECT count(*) FROM ({sql})", tuple(bind.values)
    order = [f"{scope(sort['field']).sql} {sort['dir']}" for sort in query.get("order") or ()]
    order += [f"g.a{place}" for place in range(len(keys))] or ["1"]
    sql += f" ORDER BY {', '.join(order)} {_limit(page, bind)}"
    return Statement(sql, bind.values, columns, False, False, total)


def _results(results: Sequence[tuple[str, Term]]) -> Scope:
    places = {name: Term(f"g.a{place}", term.kind) for place, (name, term) in enumerate(results)}
    return lambda name: places.get(name, Term("NULL", None))


def _call(call: Mapping[str, Any], rows: Rows, bind: Bindings) -> Term:
    func, field = call["func"], call.get("field")
    if field is None:
        return Term("count(*)", LONG)
    term = rows(field)
    if func == "count":
        return Term(f"count({term.sql})", LONG)
    if func == "count_distinct":
        return Term(f"count(DISTINCT {term.sql})", LONG)
    if func in ("min", "max"):
        return Term(f"{func}({term.sql})", term.kind)
    number = _number(term, field, f"`{func}`")
    if func == "sum":
        return Term(f"sum({number.sql})", number.kind or LONG)
    if func == "avg":
        return Term(f"avg({number.sql})", DOUBLE)
    if func == "std_dev":
        return Term(f"std_dev({number.sql})", DOUBLE)
    return Term(_nearest_rank(number.sql, float(call["arg"]), bind), DOUBLE)


def _nearest_rank(value: str, fraction: float, bind: Bindings) -> str:
    """The value at rank round(fraction * (n - 1)), halves up, of n sorted values.

    SQLite's percentile_disc rounds the rank down; from the other end, over negated values, it rounds up. The tiny
    addend keeps a rank that is whole but for its last bit from being rounded to the next one.
    """
    below, above = bind(fraction), bind(min(1.0, 1.0 - fraction + 1e-12))
    rank = f"{below} * (count({value}) - 1)"
    return (
        f"CASE WHEN {rank} - floor({rank}) < 0.5 THEN percentile_disc({value}, {below}) "
        f"ELSE -percentile_disc(-({value}), {above}) END"
    )


def _number(term: Term, field: str, what: str) -> Term:
    if term.kind in (STRING, BOOLEAN):
        held = "text" if term.kind == STRING else "booleans"
        raise invalid(f"{what} needs numbers, and the column `{field}` holds {held}")
    return term


def _window(window: Mapping[str, Any], rows: Rows, bind: Bindings) -> Term:
    """The lower edge of the window a row falls into: floor(value / width) * width, at least -2^63."""
    term = _number(rows(window["field"]), window["field"], "a window")
    value = f"CAST(floor({term.sql}) AS INTEGER)" if term.kind == DOUBLE else term.sql
    width = bind(window["every_micros"])
    # nothing on the way may leave 64 bits but the edge itself: SQLite would go on in floats
    edge = f"{value} - {value} % {width} - CASE WHEN {value} % {width} < 0 THEN {width} ELSE 0 END"
    return Term(f"CAST({edge} AS INTEGER)", LONG)


def _limit(page: Page, bind: Bindings) -> str:
    skip = f" OFFSET {bind(page.skip)}" if page.skip else ""
    return f"LIMIT {bind(page.limit + 1)}{skip}"


def _doc(column: Any) -> str | None:
    """What a page says about a column that lost values."""
    if column is None or not column.misfits:
        return None
    s = "" if column.misfits == 1 else "s"
    return f"{column.misfits} value{s} did not fit this {column.kind} column and show as null; the last: {column.misfit}"
