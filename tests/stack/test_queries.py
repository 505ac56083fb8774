"""Queries over views: what comes back, in which order, page by page, and how one is stopped."""

import asyncio
import base64
import math

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.query.compile import _nearest_rank
from desk.stack.query.filters import Bindings
from desk.stack.wire import agdx, cbor
from tests.stack.banding import Bench
from tests.stack.sdist import fixture
from tests.stack.viewing import INDEX, JSON, Views, agg, key, now_us, order, plain, pred

FLEET = [
    {
        "van": f"v{n % 3}",
        "minute": n,
        "metres": n * 10.5,
        "late": n % 4 == 0,
        "note": "x" if n % 5 == 0 else None,
    }
    for n in range(30)
]


@pytest.fixture
def empty(tmp_path):
    bench = Bench(tmp_path)
    views = Views(bench)
    views.project("van", "minute", "metres", "late", "note")
    views.bind(partitions=2)
    yield views
    views.assert_rebuilds()
    bench.store.close()


@pytest.fixture
def views(empty):
    empty.publish(*FLEET[:20])
    empty.publish(*FLEET[20:], partition=1)
    return empty


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


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"order": order("-van", "minute")},
        {"distinct": True, "select": {"fields": ["minute"]}},
        {"offset": 3},
    ],
)
async def test_pages_of_one_cursor_see_one_moment(views, parts):
    whole = await views.rows(**parts, limit=1000)
    page = await views.page(**parts, limit=7)
    pages = [plain(page)]
    parts.pop("offset", None)
    views.publish({"van": "v0", "minute": -5}, {"van": "v9", "minute": 99})
    while page["page"]["has_more"]:
        page = await views.page(**parts, limit=7, cursor=page["page"]["next_cursor"])
        pages.append(plain(page))
    assert [row for p in pages for row in p] == whole
    assert all(len(p) == 7 for p in pages[:-1])


async def test_a_field_that_came_later_is_not_on_the_pages_of_a_cursor(views):
    page = await views.page(limit=25)
    views.publish({"van": "v0"}, headers={**JSON, "agdx.idx.extra": ("string", b"x")})
    rest = await views.page(limit=25, cursor=page["page"]["next_cursor"])
    assert [f["name"] for f in rest["fields"]] == [f["name"] for f in page["fields"]]
    assert "extra" in [f["name"] for f in (await views.page())["fields"]]


async def test_numbers_of_the_wire_beyond_sqls_mean_the_largest(views):
    assert await views.rows(time_range=[0, 2**64 - 1]) == FLEET
    assert await views.rows(time_range=[2**63, 2**64 - 1]) == []
    assert await views.rows(offset=2**64 - 1) == []
    page = await views.page(limit=5)
    cursor = page["page"]["next_cursor"]
    forged = base64.urlsafe_b64encode(b"\xff" * 8 + base64.urlsafe_b64decode(cursor)[8:]).decode()
    assert "not one this stack gave" in (await views.error(limit=5, cursor=forged))["Backend"]


async def test_pages_can_be_asked_by_cursor_alone(views):
    first = await views.page(limit=20, execution_id=b"p" * 16, want_total=True)
    request = {"v": 1, "execution_id": b"p" * 16, "deadline_micros": now_us() + 9_000_000}
    rest = await views.ask(agdx.QUERY_PAGE, {**request, "cursor": first["page"]["next_cursor"]})
    assert plain(rest["Ok"]) == FLEET[20:] and rest["Ok"]["page"] == {
        "limit": 20,
        "total": 30,
        "has_more": False,
    }
    unknown = {**request, "execution_id": b"?" * 16, "cursor": "x"}
    assert "IndexNotFound" in (await views.ask(agdx.QUERY_PAGE, unknown))["Err"]


async def test_cursors_of_other_queries_or_from_nowhere_are_refused(views):
    page = await views.page(limit=5)
    cursor = page["page"]["next_cursor"]
    assert "another query" in (await views.error(limit=5, cursor=cursor, order=order("van")))["Backend"]
    assert "not one this stack gave" in (await views.error(cursor="bm90IGEgY3Vyc29y"))["Backend"]


async def test_a_cursor_does_not_outlive_a_rebuild(views):
    cursor = (await views.page(limit=5))["page"]["next_cursor"]
    views.project("van", ("minute", "/minute", "float"))
    assert list(await views.error(limit=5, cursor=cursor)) == ["ExpiredSnapshot"]
    assert (await views.rows("minute"))[:2] == [0.0, 1.0]


async def test_a_cursor_whose_rows_are_forgotten_expires(views):
    cursor = (await views.page(limit=5))["page"]["next_cursor"]
    views.bind(retention={"kind": "max_rows", "rows": 8})
    assert len(await views.rows(limit=5, cursor=cursor)) == 5  # removed, and still there for this cursor
    registry = views.bench.band.surfaces["registry"]
    with views.bench.store.transaction():
        registry.views.forget_removed(registry.views.seq)
    assert await views.error(limit=5, cursor=cursor) == {"ExpiredSnapshot": {"snapshot_id": 31}}
    assert len(await views.rows()) == 8


async def test_what_is_not_served_says_so(views):
    assert await views.error(index="nothing") == {"IndexNotFound": "nothing"}
    assert await views.error(fork="nothing") == {"ForkNotFound": "nothing"}
    for part in ({"raw_sql": {"dialect": "sqlite", "sql": "SELECT 1"}}, {"text": {"query": "x"}}):
        assert list(await views.error(**part)) == ["Unsupported"]
    assert list(await views.error(target={"kind": "lakehouse"})) == ["Unsupported"]
    too_large = {"TooLarge": {"what": "limit", "size": 2000, "cap": 1000}}
    assert await views.error(limit=2000) == too_large
    assert cbor.dumps({"Err": too_large}) == fixture("query_reply_err_too_large.bin")


@pytest.mark.parametrize(
    "parts",
    [
        {"time_range": [2, 1]},
        {"filter": {"all": []}},
        {"filter": {"maybe": []}},
        {"filter": pred("van", "in", [])},
        {"filter": pred("van", "prefix", 5)},
        {"filter": {"pred": {"field": " van", "op": "eq", "value": {"kind": "null"}}}},
        {"filter": {"pred": {"field": "van", "op": "eq", "value": {"kind": "struct", "value": []}}}},
        {"filter": {"pred": {"field": "van", "op": "eq", "value": {"kind": "long", "value": "1"}}}},
        {"having": pred("van", "eq", 1)},
        {"aggregate": {"funcs": []}},
        {"aggregate": {"funcs": [agg("count"), agg("count")]}},
        {"aggregate": {"group_by": ["count"], "funcs": [agg("count")]}},
        {"aggregate": {"funcs": [agg("percentile", "metres", arg=2.0)]}},
        {"aggregate": {"funcs": [agg("count")]}, "select": {"payload": True}},
        {"order": [{"field": "van", "dir": "up"}]},
        {"vector": {"field": "e", "embedding": [], "top_k": 1}},
        {"consistency": "hopeful"},
    ],
)
async def test_an_invalid_query_is_one_sentence(views, parts):
    (text,) = (await views.error(**parts)).values()
    assert text.startswith("invalid query: ") and "\n" not in text


async def test_a_filter_nested_too_deep_is_refused(views):
    node = pred("van", "eq", "v1")
    for _ in range(64):
        node = {"not": node}
    assert "depth 64" in (await views.error(filter=node))["Backend"]
    assert len(await views.rows(filter=node["not"])) == 20  # 63 negations of 10 rows of 30


async def test_a_query_in_a_batch_is_refused_and_the_rest_of_it_stands(views):
    query = {
        "execution_id": b"b" * 16,
        "target": {"kind": "operational", "index": INDEX},
        "deadline_micros": now_us() + 9_000_000,
        "by_key": key(van="v1"),  # would make an index
        "page": {"limit": 5, "offset": 0},
    }
    written = {"v": 1, "namespace": "n", "key": b"k", "value": b"v"}
    items = ((agdx.QUERY, {"v": 1, "query": query}), (agdx.KV_SET, written))
    ops = [{"code": code, "payload": cbor.dumps(request)} for code, request in items]
    slots = cbor.loads(views.bench.mutate(agdx.BATCH, {"v": 1, "ops": ops}))["results"]
    assert [cbor.loads(slot) for slot in slots] == [
        {"code": "unsupported", "message": "a query cannot ride in a batch"},
        {"Ok": "Written"},
    ]


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
    async with asyncio.timeout(10):
        while not registry.views.get(INDEX).columns["van"].indexed:
            assert len(await views.rows(by_key=key(van="v1"))) == 10
    made = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name LIKE 'view_1_c%'"
    assert views.bench.store.db.execute(made).get == 1
    assert len(await views.rows(by_key=key(van="v1"))) == 10


async def test_payload_pages_end_early_rather_than_grow(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.MAX_PAGE_BYTES", 300)
    pages = await views.walk(select={"payload": True}, order=order("minute"))
    assert [row["minute"] for page in pages for row in page] == list(range(30))
    assert len(pages) > 5


async def test_status_follows_a_query(views):
    await views.page(execution_id=b"s" * 16)
    request = {"v": 1, "execution_id": b"s" * 16}
    status = (await views.ask(agdx.QUERY_STATUS, request))["Ok"]
    assert status["state"] == "completed" and status["row_count"] == 30 and status["produced_bytes"] > 1000
    assert status["finished_at_micros"] >= status["started_at_micros"]
    assert list(status) == list(cbor.loads(fixture("query_status_reply.bin"))["Ok"])
    assert (await views.ask(agdx.QUERY_CANCEL, request))["Ok"] == status
    assert (
        "IndexNotFound" in (await views.ask(agdx.QUERY_STATUS, {**request, "execution_id": b"u" * 16}))["Err"]
    )


async def test_a_running_query_is_cancelled(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.compiled", _endless)
    running = asyncio.create_task(views.reply(execution_id=b"c" * 16))
    request = {"v": 1, "execution_id": b"c" * 16}
    while (await views.ask(agdx.QUERY_STATUS, request)).get("Ok", {}).get("state") != "running":  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert (await views.ask(agdx.QUERY_CANCEL, request))["Ok"]["state"] == "cancelled"
    assert await running == {"Err": {"Cancelled": {"execution_id": b"c" * 16}}}
    assert (await views.ask(agdx.QUERY_STATUS, request))["Ok"]["state"] == "cancelled"


async def test_a_query_past_its_deadline_is_stopped_and_holds_up_nobody(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.compiled", _endless)
    running = [
        asyncio.create_task(views.reply(execution_id=bytes((n,)) * 16, deadline_micros=now_us() + 200_000))
        for n in range(1, 6)  # more than there are threads
    ]
    for n, reply in enumerate(await asyncio.gather(*running), start=1):
        assert reply == {"Err": {"DeadlineExceeded": {"execution_id": bytes((n,)) * 16}}}
    request = {"v": 1, "execution_id": b"\x01" * 16}
    status = (await views.ask(agdx.QUERY_STATUS, request))["Ok"]
    assert status["state"] == "expired" and "error" not in status
    monkeypatch.undo()
    assert len(await views.rows()) == 30


async def test_a_deadline_in_the_past_is_refused_at_once(views):
    error = await views.error(execution_id=b"d" * 16, deadline_micros=1)
    assert error == {"DeadlineExceeded": {"execution_id": b"d" * 16}}


async def test_a_failed_query_tells_why_and_its_status_too(views):
    views.publish({"minute": 2**62}, {"minute": 2**62})
    error = await views.error(execution_id=b"f" * 16, aggregate={"funcs": [agg("sum", "minute")]})
    assert error == {"Backend": "integer overflow"}
    status = (await views.ask(agdx.QUERY_STATUS, {"v": 1, "execution_id": b"f" * 16}))["Ok"]
    assert status["state"] == "failed" and status["error"] == error


def _endless(query, snapshot, page):
    """A statement that never ends by itself."""
    from desk.stack.query.compile import Statement
    from desk.stack.wire.query_reply import Output

    sql = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    return Statement(sql, (), [Output("x", "long")], False, False, None)
