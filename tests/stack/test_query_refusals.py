"""Queries that are refused: in one sentence, and nothing else happens."""

import itertools

import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.fleet import bound, filled
from tests.stack.sdist import fixture
from tests.stack.viewing import INDEX, agg, key, now_us, pred


@pytest.fixture
def views(tmp_path):
    yield from map(filled, bound(tmp_path))


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
        {"aggregate": {"funcs": [agg("count")], "window": {"field": "minute", "every_micros": 0}}},
        {"aggregate": {"funcs": [agg("count")], "window": {"field": "minute", "every_micros": 2**63}}},
        {"aggregate": {"funcs": [agg("count")]}, "select": {"payload": True}},
        {"order": [{"field": "van", "dir": "up"}]},
        {"vector": {"field": "e", "embedding": [], "top_k": 1}},
        {"consistency": "hopeful"},
    ],
)
async def test_an_invalid_query_is_one_sentence(views, parts):
    (text,) = (await views.error(**parts)).values()
    assert text.startswith("invalid query: ") and "\n" not in text


def literal(kind, value, op="eq", field="van"):
    return {"pred": {"field": field, "op": op, "value": {"kind": kind, "value": value}}}


def decimal(unscaled, scale):
    return {"unscaled": unscaled, "precision": 38, "scale": scale}


TOO_LARGE = (
    ("decimal", decimal(b"\x01", -999_990), "a decimal has 1 to 16 unscaled bytes"),
    ("decimal", decimal(b"\x01", -(10**9)), "a decimal has"),
    ("decimal", decimal(b"\x01", 39), "a decimal has"),
    ("decimal", decimal(b"\x01", 10**5000), "a decimal has"),
    ("decimal", decimal(b"\x01" * 17, 1), "a decimal has"),
    ("decimal", decimal([1] * 100_000, 1), "a decimal has"),
    ("decimal", decimal(b"", 1), "a decimal has"),
    ("decimal", {"unscaled": b"\x01"}, "a decimal has"),
    ("decimal", "1.5", "a decimal has"),
    ("long", 10**5000, "an integer beyond 64 bits"),
    ("int", -(2**63) - 1, "an integer beyond 64 bits"),
    ("double", 2**63, "an integer beyond 64 bits"),
    ("date", 10**5000, "an integer beyond 64 bits"),
    ("timestamp_micros", 10**5000, "an integer beyond 64 bits"),
)


async def test_numbers_beyond_the_protocols_are_refused(views):
    for (kind, value, says), op, field in itertools.product(
        TOO_LARGE, ("eq", "lt", "contains", "in"), ("van", "metres", "nothing")
    ):
        wanted = {"kind": kind, "value": value}
        tested = (
            literal("list", [{"kind": "null"}, wanted], op, field)
            if op == "in"
            else literal(kind, value, op, field)
        )
        error = await views.error(filter=tested)
        assert error["Backend"].startswith(f"invalid query: {says}")
        assert await views.error(by_key=[{"field": field, "value": wanted}]) == error


async def test_the_largest_numbers_are_served(views):
    for unscaled, scale in ((b"\x7f" * 16, 0), (b"\x80" + b"\x00" * 15, 38), ([1], 38)):
        assert await views.rows(filter=literal("decimal", decimal(unscaled, scale), "eq", "metres")) == []
    assert await views.rows(filter=literal("long", -(2**63), "lt", "metres")) == []


async def test_long_lists_are_refused(views):
    most = list(range(4096))
    assert len(await views.rows(limit=100, filter=pred("minute", "in", most))) > 0
    error = await views.error(filter=pred("minute", "in", [*most, 1]))
    assert error["Backend"] == "invalid query: `in` takes a list of at most 4096 values"
    error = await views.error(filter={"any": [pred("minute", "in", most)] * 9})
    assert error["Backend"] == "invalid query: a query compares with at most 32766 values"


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
