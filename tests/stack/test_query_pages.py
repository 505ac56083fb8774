"""Pages of a query: one moment, whatever happens between them, and the next page made ahead."""

import asyncio
import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.wire import agdx
from tests.stack.fleet import FLEET, bound, filled
from tests.stack.viewing import JSON, agg, now_us, order, plain, pred


@pytest.fixture
def views(tmp_path):
    yield from map(filled, bound(tmp_path))


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
    request = {"v": 1, "execution_id": b"p" * 16, "deadline_micros": now_us() + 60_000_000}
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


async def test_payload_pages_end_early_rather_than_grow(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.MAX_PAGE_BYTES", 300)
    pages = await views.walk(select={"payload": True}, order=order("minute"))
    assert [row["minute"] for page in pages for row in page] == list(range(30))
    assert len(pages) > 5


class Spied:
    """The pages a bench was asked for, and how many of them had been made ahead."""

    def __init__(self, views, monkeypatch):
        self.taken = 0
        ahead = views.bench.band.surfaces["query"]._ahead
        take = ahead.take

        def counting(question, snapshot):
            job = take(question, snapshot)
            self.taken += job is not None
            return job

        monkeypatch.setattr(ahead, "take", counting)


def answer(page):
    """A reply without what differs from one asking to the next."""
    context = page["context"]
    kept = {k: v for k, v in context.items() if k not in ("execution_id", "elapsed_micros", "scanned_bytes")}
    return {**page, "context": kept}


_BETWEEN = {
    "nothing": lambda views: None,
    "a record": lambda views: views.publish({"van": "v1", "minute": 3}),
    "a value that does not fit": lambda views: views.publish({"minute": "late"}),
    "a new field": lambda views: views.publish(
        {"van": "v0"}, headers={**JSON, "agdx.idx.more": ("u8", b"x")}
    ),
    "retention": lambda views: views.bind(partitions=0, retention={"kind": "max_rows", "rows": 9}),
    "a gap": lambda views: views.bench.log.forget("desk", "events", 0, 12),
    "a rebuild": lambda views: views.project("van", ("minute", "/minute", "float"), "metres", "late", "note"),
}
_QUERIES = (
    {},
    {"order": order("-van")},
    {"distinct": True, "select": {"fields": ["minute", "van"]}, "want_total": True},
    {"filter": pred("minute", "gte", 4), "select": {"payload": True}},
    {"aggregate": {"group_by": ["minute"], "funcs": [agg("count")]}},
)


@settings(max_examples=40)
@given(
    parts=st.sampled_from(_QUERIES),
    limit=st.sampled_from([3, 4, 7]),
    between=st.lists(st.sampled_from(sorted(_BETWEEN)), max_size=8),
)
def test_a_page_made_ahead_is_the_page_made_when_asked(tmp_path_factory, parts, limit, between):
    async def walk(views):
        page, steps = await views.page(**parts, limit=limit), iter(between)
        while page["page"]["has_more"]:
            await settled(views)
            views.bench.clock.forward(0.001)
            _BETWEEN[next(steps, "nothing")](views)
            cursor = page["page"]["next_cursor"]
            first = await views.reply(**parts, limit=limit, cursor=cursor)
            again = await views.reply(**parts, limit=limit, cursor=cursor)  # the one made ahead is used up
            if "Err" in first:
                assert first == again and list(first["Err"]) == ["ExpiredSnapshot"]
                return
            page = again["Ok"]
            assert answer(first["Ok"]) == answer(page)

    for views in map(filled, bound(tmp_path_factory.mktemp("ahead"))):
        asyncio.run(walk(views))


async def test_the_next_page_is_made_while_the_client_reads(views, monkeypatch):
    spied, cursor, rows = Spied(views, monkeypatch), {}, []
    while True:
        page = await views.page(limit=5, **cursor)
        rows += plain(page)
        if not page["page"]["has_more"]:
            break
        cursor = {"cursor": page["page"]["next_cursor"]}
        await settled(views)
    assert rows == FLEET
    assert spied.taken == 4, "six pages: the first two are made when they are asked for"


async def test_one_page_alone_makes_no_other(views):
    await views.page(limit=5)
    await settled(views)
    assert not views.bench.band.surfaces["query"]._ahead._kept


async def test_pages_made_ahead_are_few_and_small(views, monkeypatch):
    ahead = views.bench.band.surfaces["query"]._ahead
    for number in range(9):
        parts = {"filter": pred("minute", "gte", number), "limit": 5}
        page = await views.page(**parts)
        await views.page(**parts, cursor=page["page"]["next_cursor"])
        await settled(views)
    assert len(ahead._kept) == 4
    monkeypatch.setattr("desk.stack.query.ahead.MAX_BYTES", 10)
    await views.page(**parts, cursor=page["page"]["next_cursor"])
    await settled(views)
    assert len(ahead._kept) == 3, "a large page is not kept"


async def settled(views):
    """Until what was begun ahead has come to its end."""
    await asyncio.sleep(0)
    while not views.bench.band.surfaces["query"].runner.idle:  # noqa: ASYNC110
        await asyncio.sleep(0)
