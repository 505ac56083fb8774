"""Filters as SQL, against twenty lines of Python that say what a filter means."""

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desk.stack.query.filters import Bindings, Term, condition, joined
from desk.stack.query.kinds import number_in, text_of
from desk.stack.wire.query import BOOLEAN, DOUBLE, LONG, STRING
from tests.stack.viewing import pred

KINDS = {"n": LONG, "x": DOUBLE, "s": STRING, "b": BOOLEAN}
TERMS = {name: Term(f"c{place}", kind) for place, (name, kind) in enumerate(KINDS.items())}
TEXTS = st.text("019.-+eab é\U0001f600%_'\"", max_size=4)
NUMBERS = st.integers(-3, 12) | st.integers(-(2**63), 2**63 - 1)
REALS = st.integers(-40, 40).map(lambda n: n / 4)
VALUES = st.none() | NUMBERS | REALS | TEXTS | st.booleans()
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | NUMBERS,
            "x": st.none() | REALS,
            "s": st.none() | TEXTS,
            "b": st.none() | st.booleans(),
        }
    ),
    max_size=8,
)
FIELDS = st.sampled_from(["n", "x", "s", "b", "unknown"])
LEAVES = (
    st.builds(pred, FIELDS, st.sampled_from(["eq", "ne", "lt", "lte", "gt", "gte", "contains"]), VALUES)
    | st.builds(pred, FIELDS, st.just("prefix"), TEXTS)
    | st.builds(pred, FIELDS, st.just("in"), st.lists(VALUES, min_size=1, max_size=3))
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda f: {"not": f}, inner)
        | st.builds(lambda f: {"all": f}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda f: {"any": f}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


def meant(row, node):
    ((tag, body),) = node.items()
    if tag == "not":
        return not meant(row, body)
    if tag in ("all", "any"):
        return (all if tag == "all" else any)(meant(row, child) for child in body)
    value, op, wanted = row.get(body["field"]), body["op"], plain(body["value"])
    if wanted is None:
        return {"eq": value is None, "ne": value is not None}.get(op, False)
    if value is None:
        return False
    if op == "in":
        return any(compared(value, "eq", item) for item in wanted if item is not None)
    if op in ("contains", "prefix"):
        return text_of(value).startswith(wanted) if op == "prefix" else text_of(wanted) in text_of(value)
    return compared(value, op, wanted)


def compared(value, op, wanted):
    """As numbers when both are or read as numbers, else as text; two texts are equal only when they are."""
    sides = (value, wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        sides = text_of(value), text_of(wanted)
    elif not (isinstance(value, str) and isinstance(wanted, str) and op in ("eq", "ne")):
        numbers = [number_in(side) if isinstance(side, str) else side for side in sides]
        sides = numbers if None not in numbers else (text_of(value), text_of(wanted))
    a, b = sides
    return {"eq": a == b, "ne": a != b, "lt": a < b, "lte": a <= b, "gt": a > b, "gte": a >= b}[op]


def plain(value):
    return [plain(v) for v in value["value"]] if value["kind"] == "list" else value.get("value")


@settings(max_examples=400, deadline=None)
@given(ROWS, FILTERS)
@example([{"n": 1, "x": None, "s": "10", "b": None}], pred("s", "gt", 9))
@example([{"n": None, "x": None, "s": None, "b": None}], {"not": pred("n", "ne", 1)})
def test_a_filter_keeps_what_it_means(rows, node):
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE t (at INTEGER, c0 INTEGER, c1 REAL, c2 TEXT, c3 INTEGER)")
    db.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?, ?)",
        [(i, *(row[name] for name in KINDS)) for i, row in enumerate(rows)],
    )
    bind = Bindings()
    sql = condition(node, lambda name: TERMS.get(name, Term("NULL", None)), bind)
    found = [i for (i,) in db.execute(f"SELECT at FROM t WHERE {sql} ORDER BY at", bind.values)]
    assert found == [i for i, row in enumerate(rows) if meant(row, node)], sql
    db.close()


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_four_thousand_predicates_are_one_statement(word):
    db = apsw.Connection(":memory:")
    assert db.execute(f"SELECT {joined(['1'] * 4096, word)}").get == 1


def test_what_users_write_never_becomes_sql():
    bind = Bindings()
    evil = "'; DROP TABLE t; --"
    sql = condition({"any": [pred("s", "eq", evil), pred(evil, "eq", 1)]}, _scope, bind)
    assert evil not in sql and bind.values == [evil]


def _scope(name):
    return TERMS.get(name, Term("NULL", None))
