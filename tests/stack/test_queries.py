"""Queries over views: what comes back, and in which order."""

import asyncio
import math

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.query.compile import _nearest_rank
from desk.stack.query.filters import Bindings
from tests.stack.fleet import FLEET, bound, filled
from tests.stack.viewing import INDEX, agg, key, order, plain, pred


@pytest.fixture
def empty(tmp_path):
    yield from bound(tmp_path)


@pytest.fixture
def views(empty):
    return filled(empty)


async def test_rows_come_in_the_order_they_were_made(views):
    page = await views.page()
    assert plain(page) == FLEET
    assert [f["name"] for f in page["fields"]][-2:] == ["__laser_partition_id", "__laser_offset"]
    assert page["context"]["frontier"] == [
        {**place, "topic_created_at_micros": page["context"]["frontier"][0]["topic_created_at_micros"]}
        for place in (
            {"stream": "desk", "topic": "events", "partition_id": 0, "applied_offset": 19},
            {"stream": "desk", "topic": "events", "partition_id": 1, "applied_offset": 9},
        )
    ]


async def test_selected_fields_come_once_and_as_asked(views):
    page = await views.page(select={"fields": ["minute", "nothing", "minute"]}, limit=1)
    assert [f["name"] for f in page["fields"]] == ["minute", "nothing"]
    assert plain(page) == [{"minute": 0, "nothing": None}]


async def test_all_that_narrows_a_query_narrows_together(views):
    found = await views.rows(
        "minute",
        by_key=key(van="v1", late=False),
        filter={"all": [pred("minute", "gt", 3), {"not": pred("note", "eq", "x")}]},
    )
    wanted = [
        r["minute"] for r in FLEET if r["van"] == "v1" and not r["late"] and r["minute"] > 3 and not r["note"]
    ]
    assert found == wanted


async def test_order_puts_nulls_first_and_keeps_ties_as_they_came(views):
    rows = await views.rows("note", "minute", order=order("note", "-minute"))
    assert rows == sorted(((r["note"], r["minute"]) for r in FLEET), key=lambda r: (r[0] is not None, -r[1]))
    descending = await views.rows("van", "minute", order=order("-van"), limit=4)
    assert descending == [("v2", 2), ("v2", 5), ("v2", 8), ("v2", 11)]


async def test_aggregates_over_groups(views):
    rows = await views.rows(
        aggregate={
            "group_by": ["van"],
            "funcs": [
                agg("count"),
                agg("count", "note", "notes"),
                agg("count_distinct", "late"),
                agg("sum", "minute"),
                agg("avg", "minute"),
                agg("min", "metres"),
                agg("max", "metres"),
                agg("std_dev", "minute", "stddev"),
                agg("percentile", "minute", "p90", 0.9),
            ],
        }
    )
    assert [row["van"] for row in rows] == ["v0", "v1", "v2"]
    own = [r for r in FLEET if r["van"] == "v1"]
    minutes = sorted(r["minute"] for r in own)
    mean = sum(minutes) / len(minutes)
    assert rows[1] == {
        "van": "v1",
        "count": 10,
        "notes": sum(r["note"] is not None for r in own),
        "count_distinct": 2,
        "sum": sum(minutes),
        "avg": mean,
        "min": min(r["metres"] for r in own),
        "max": max(r["metres"] for r in own),
        "stddev": pytest.approx(math.sqrt(sum((m - mean) ** 2 for m in minutes) / len(minutes))),
        "p90": float(minutes[round(0.9 * (len(minutes) - 1))]),
    }


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-50, 50) | st.floats(-50, 50), max_size=40),
    st.floats(0, 1) | st.sampled_from([0.1, 0.9, 0.35]),
)
def test_a_percentile_is_the_value_at_the_nearest_rank(numbers, fraction):
    db = apsw.Connection("")
    db.execute("CREATE TABLE t (x)")
    db.executemany("INSERT INTO t VALUES (?)", [(x,) for x in [*numbers, None]])
    bind = Bindings()
    found = db.execute(f"SELECT {_nearest_rank('x', fraction, bind)} FROM t", bind.values).get
    rank = math.floor(fraction * (len(numbers) - 1) + 0.5)
    assert found == (sorted(numbers)[rank] if numbers else None)


async def test_having_order_and_limit_apply_to_groups(views):
    groups = {"group_by": ["note"], "funcs": [agg("count")]}
    assert await views.rows(aggregate=groups, having=pred("count", "gt", 10)) == [{"note": None, "count": 24}]
    assert await views.rows(aggregate=groups, having=pred("note", "eq", "x")) == [{"note": "x", "count": 6}]
    page = await views.page(aggregate=groups, order=order("-count"), limit=1, want_total=True)
    assert plain(page) == [{"note": None, "count": 24}]
    assert page["page"]["has_more"] and page["page"]["total"] == 2
    rest = await views.page(
        aggregate=groups, order=order("-count"), limit=1, cursor=page["page"]["next_cursor"]
    )
    assert plain(rest) == [{"note": "x", "count": 6}]


async def test_windows_are_edges_below(views):
    views.publish({"minute": -1}, {"minute": None, "van": "none"})
    rows = await views.rows(
        aggregate={"funcs": [agg("count")], "window": {"field": "minute", "every_micros": 10}},
    )
    assert rows == [
        {"window_start": None, "count": 1},
        {"window_start": -10, "count": 1},
        {"window_start": 0, "count": 10},
        {"window_start": 10, "count": 10},
        {"window_start": 20, "count": 10},
    ]
    real = {"funcs": [agg("count")], "window": {"field": "metres", "every_micros": 100}}
    assert (await views.rows(aggregate=real))[1] == {"window_start": 0, "count": 10}


@pytest.mark.parametrize("width", [1, 7, 60_000_000, 2**62, 2**63 - 1])
async def test_window_edges_of_all_numbers_there_are(empty, width):
    numbers = [-(2**63), -(2**63) + 1, -(2**62), -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1]
    empty.publish(*({"minute": n} for n in numbers))
    window = {"field": "minute", "every_micros": width}
    rows = await empty.rows("window_start", aggregate={"funcs": [agg("count")], "window": window})
    assert rows == sorted({max(n // width * width, -(2**63)) for n in numbers})


async def test_an_aggregate_over_nothing(empty):
    assert await empty.rows(aggregate={"funcs": [agg("count"), agg("sum", "metres")]}) == [
        {"count": 0, "sum": None}
    ]
    assert await empty.rows(aggregate={"group_by": ["van"], "funcs": [agg("count")]}) == []
    assert plain(await empty.page()) == []


async def test_numbers_are_asked_of_number_columns_only(views):
    error = await views.error(aggregate={"funcs": [agg("sum", "van")]})
    assert error == {"Backend": "invalid query: `sum` needs numbers, and the column `van` holds text"}
    error = await views.error(
        aggregate={"funcs": [agg("count")], "window": {"field": "late", "every_micros": 5}}
    )
    assert error == {"Backend": "invalid query: a window needs numbers, and the column `late` holds booleans"}


async def test_distinct_rows_keep_their_first_place(views):
    assert await views.rows(select={"fields": ["van"]}, distinct=True) == [
        {"van": v} for v in ("v0", "v1", "v2")
    ]
    ordered = await views.page(
        select={"fields": ["late"]}, distinct=True, order=order("-minute"), limit=1, want_total=True
    )
    assert plain(ordered) == [{"late": False}] and ordered["page"]["total"] == 2
    assert await views.error(distinct=True, select={"payload": True}) == {
        "Unsupported": "distinct rows carry no payload"
    }


async def test_time_is_the_records_own_or_the_brokers(empty):
    empty.project("ts", "van")
    at = empty.bench.clock.us
    empty.publish({"ts": 5_000, "van": "own"}, {"van": "broker"})
    assert await empty.rows("ts") == [5_000, at]
    assert await empty.rows("van", time_range=[4_000, 5_000]) == ["own"]
    assert await empty.rows("van", time_range=[at, at + 1]) == ["broker"]
    assert await empty.rows("van", filter=pred("ts", "gt", 5_000)) == ["broker"]


async def test_time_of_a_view_without_a_time_field(views):
    at = views.bench.clock.us
    assert len(await views.rows(time_range=[at - 1_000_000, at])) == 30
    assert await views.rows("ts", select={"fields": ["ts"]}, limit=1) == [
        (await views.rows("ts", select={"fields": ["ts"]}))[0]
    ]


async def test_message_type_is_a_field_like_any_other(empty):
    empty.project("message_type", "van")
    empty.publish({"message_type": "moved", "van": "a"}, {"message_type": "stopped", "van": "b"})
    assert await empty.rows("van", message_type="stopped") == ["b"]


async def test_every_consistency_level_is_met(views):
    for level in ("eventual", "read_your_writes", "strong"):
        page = await views.page(consistency=level)
        context = page["context"]
        assert context["requested_consistency"] == context["delivered_consistency"] == level
        assert len(page["rows"]) == 30


async def test_an_exact_match_makes_an_index_and_later_rows_are_in_it(views):
    assert len(await views.rows(by_key=key(van="v1"))) == 10
    views.publish({"van": "v1"})
    assert len(await views.rows(by_key=key(van="v1"))) == 11
    registry = views.bench.band.surfaces["registry"]
    assert registry.views.get(INDEX).columns["van"].indexed


async def test_a_large_view_gets_its_index_beside_the_queries(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.indexer.AT_ONCE", 5)
    registry = views.bench.band.surfaces["registry"]
    async with asyncio.timeout(60):
        while not registry.views.get(INDEX).columns["van"].indexed:
            assert len(await views.rows(by_key=key(van="v1"))) == 10
    made = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name LIKE 'view_1_c%'"
    assert views.bench.store.db.execute(made).get == 1
    assert len(await views.rows(by_key=key(van="v1"))) == 10
