"""Queries that are refused: in one sentence, and nothing else happens."""

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
