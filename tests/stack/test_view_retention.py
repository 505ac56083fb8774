"""How long rows live: every retention kind, expiry and purge of the log, topics deleted and made again."""

from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from desk.stack.wire import agdx
from tests.stack.banding import Bench
from tests.stack.viewing import INDEX, STREAM, TOPIC, Views, order


@pytest.fixture
def views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bench = Bench(tmp_path)
    bench.firsts = {}
    read = bench.log.read

    def first(stream, topic, partition):
        return bench.firsts.get((stream, topic, partition), 0)

    def kept(stream, topic, partition, start, count=None):
        return read(stream, topic, partition, max(start, first(stream, topic, partition)), count)

    monkeypatch.setattr(bench.log, "first", first)
    monkeypatch.setattr(bench.log, "read", kept)
    views = Views(bench)
    bench.clock.forward(3_600)  # ahead of the real one, so that only a test moves it
    views.project("n")
    views.rebuilds = True
    yield views
    if views.rebuilds:
        views.assert_rebuilds()
    bench.close()


def expire(views, first, partition=0):
    """The log loses the records below an offset, without a word to anybody."""
    views.bench.firsts[STREAM, TOPIC, partition] = first


def remake(views, delete_only=False):
    """The topic is deleted (and made again)."""
    log = views.bench.log
    log._topics.pop((STREAM, TOPIC))
    log._records.pop((STREAM, TOPIC, 0), None)
    views.bench.firsts.clear()
    views.bench.clock.forward(1)
    if not delete_only:
        log.ensure(STREAM, TOPIC, 1)


async def numbers(views):
    return await views.rows("n", order=order("n"))


def publish(views, *numbers_):
    views.bench.clock.forward(2)  # the sweep runs at most once a second
    views.publish(*({"n": n} for n in numbers_))


KEEPING = {"keep": {"kind": "keep"}, "until": {"kind": "keep_until_source_deleted"}}
OTHERS = {"ttl": {"kind": "time_to_live", "ttl_micros": 10**12}, "max": {"kind": "max_rows", "rows": 99}}


@pytest.mark.parametrize("retention", [None, {"kind": "mirror_log"}])
async def test_mirrored_rows_go_with_their_records(views, retention):
    views.bind(**({"retention": retention} if retention else {}))
    publish(views, 1, 2, 3)
    expire(views, 2)
    assert await numbers(views) == [3]  # before any sweep
    publish(views, 4)
    assert await numbers(views) == [3, 4]
    live = "SELECT count(*) FROM view_1 WHERE gone IS NULL"
    assert views.bench.store.db.execute(live).get == 2  # after it


@pytest.mark.parametrize("retention", [*KEEPING.values(), *OTHERS.values()])
async def test_kept_rows_outlive_their_records_and_a_rebuild(views, retention):
    views.bind(retention=retention)
    publish(views, 1, 2, 3)
    expire(views, 2)
    publish(views, 4)
    assert await numbers(views) == [1, 2, 3, 4]
    views.project("n", "other")
    assert await numbers(views) == [1, 2, 3, 4]
    assert await views.rows("other", limit=1) == [None]


@pytest.mark.parametrize("name", ["mirror", *KEEPING, *OTHERS])
async def test_a_deleted_topic_takes_the_rows_that_hang_on_it(views, name):
    retention = {"mirror": {"kind": "mirror_log"}, **KEEPING, **OTHERS}[name]
    views.bind(retention=retention)
    publish(views, 1, 2)
    remake(views, delete_only=True)
    stay = [] if name in ("mirror", "until") else [1, 2]
    assert await numbers(views) == stay
    views.bench.log.ensure(STREAM, TOPIC, 1)
    assert await numbers(views) == stay
    publish(views, 7)
    assert await numbers(views) == [*stay, 7]


async def test_a_purged_partition_starts_over(views):
    views.bind()
    publish(views, 1, 2, 3)
    views.bench.log._records[STREAM, TOPIC, 0].clear()
    assert await numbers(views) == []
    publish(views, 9)
    assert await numbers(views) == [9]


async def test_rows_past_their_time_are_not_seen(views):
    views.bind(retention={"kind": "time_to_live", "ttl_micros": 10_000_000})
    publish(views, 1)
    views.bench.clock.forward(6)
    publish(views, 2)
    assert await numbers(views) == [1, 2]
    views.bench.clock.forward(5)
    assert await numbers(views) == [2]
    publish(views, 3)
    assert views.bench.store.db.execute("SELECT count(*) FROM view_1 WHERE gone IS NULL").get == 2


async def test_the_newest_rows_stay(views):
    views.bind(retention={"kind": "max_rows", "rows": 3})
    for n in range(5):
        publish(views, n)
    assert await numbers(views) == [2, 3, 4]
    publish(views, *range(10, 17))
    assert await numbers(views) == [14, 15, 16]


async def test_the_newest_rows_of_all_partitions_stay_also_in_a_rebuild(views):
    """Compared with a rebuild at the end, which reads one partition after the other."""
    views.bind(retention={"kind": "max_rows", "rows": 3}, partitions=3)
    views.bind("other", index=INDEX)
    for n in range(6):
        views.bench.clock.forward(2)
        views.publish({"n": n}, partition=2 - n % 3)
    assert await numbers(views) == [3, 4, 5]
    views.bench.restart()
    views.bench.clock.forward(2)
    views.publish({"n": 6}, {"n": 7}, topic="other")
    assert await numbers(views) == [5, 6, 7]


async def test_a_row_that_was_taken_out_makes_room_for_one(views):
    views.bind("other", index=INDEX)
    views.bind(retention={"kind": "max_rows", "rows": 4})
    publish(views, 1, 2)
    views.publish({"n": 3}, {"n": 4}, topic="other")
    views.bench.firsts[STREAM, "other", 0] = 2
    views.bench.clock.forward(2)
    assert await numbers(views) == [1, 2]
    publish(views, 5, 6)
    assert await numbers(views) == [1, 2, 5, 6]


async def test_another_retention_holds_for_the_rows_that_are_there(views):
    views.rebuilds = False  # what an earlier retention took away, the log may still have
    views.bind(retention={"kind": "keep"})
    publish(views, *range(6))
    views.bind(retention={"kind": "max_rows", "rows": 2}, partitions=0)
    assert await numbers(views) == [4, 5]
    views.bind(retention={"kind": "time_to_live", "ttl_micros": 3_000_000}, partitions=0)
    publish(views, 6)
    assert await numbers(views) == [4, 5, 6]
    views.bench.clock.forward(1.5)
    assert await numbers(views) == [6]
    views.bind(retention={"kind": "keep"}, partitions=0)
    views.bench.clock.forward(100)
    assert await numbers(views) == [6]
    publish(views, 7)
    assert await numbers(views) == [6, 7]


async def test_an_unknown_retention_is_refused(views):
    body = {"source": {"stream": "s", "topic": "t"}, "allowed_projections": [], "default_projection": None}
    for retention in ({"kind": "sometimes"}, {"kind": "time_to_live"}, {"kind": "max_rows", "rows": 0}):
        assert (
            views.control({"ApplyBinding": {**body, "index": "i", "retention": retention}})
            == "invalid_argument"
        )


async def test_whoever_is_pinned_keeps_the_rows_whose_records_are_gone(views):
    views.bind()
    publish(views, 1, 2, 3, 4)
    assert views.bench.ok(agdx.FORK_CREATE, {"v": 1, "fork_id": "frozen", "kind": "severed"})
    first = await views.page(limit=2, order=order("n"))
    expire(views, 3)
    rest = {"limit": 2, "order": order("n"), "cursor": first["page"]["next_cursor"]}
    for _ in range(2):  # before a sweep and after it
        assert await views.rows("n", **rest) == [3, 4]
        assert await views.rows("n", fork="frozen") == [1, 2, 3, 4]
        assert (await numbers(views))[0] == 4
        publish(views, 5)
        rows = views.bench.store.db.execute("SELECT count(*) FROM view_1 WHERE gone IS NULL").get
        assert rows == len(await numbers(views))


async def test_a_disk_that_takes_nothing_more_does_not_bring_them_back(views, monkeypatch):
    def full(*_):
        raise apsw.FullError("database or disk is full")

    views.bind()
    publish(views, 1, 2)
    expire(views, 1)
    with monkeypatch.context() as patch:
        patch.setattr(views.bench.band.surfaces["registry"].projector, "settle", full)
        assert await numbers(views) == [2]


@pytest.mark.parametrize("partitions", [1, 0])
async def test_rows_without_records_are_taken_out_once(views, partitions):
    views.bind(partitions=2)
    views.publish({"n": 1})
    views.publish({"n": 2}, partition=1)
    if partitions:
        views.bench.log._topics[STREAM, TOPIC] = replace(
            views.bench.log._topics[STREAM, TOPIC], partitions=partitions
        )
    else:
        remake(views, delete_only=True)
    assert await numbers(views) == [1, 2][:partitions]
    registry = views.bench.band.surfaces["registry"]
    assert registry.projector.gaps(registry.views.get(INDEX)) == []
