"""Forks: what a branch sees, what it changes, and what stays of it."""

import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.banding import Bench
from tests.stack.sdist import fixture
from tests.stack.viewing import INDEX, Views, agg, key, order, plain, pred

TRUNK = [{"van": "v1", "metres": 100.0, "stop": 1}, {"van": "v2", "metres": 200.0, "stop": 2}]


class Forking(Views):
    """A view with two rows and what a client does with forks of it."""

    def create(self, fork="f", **more):
        return self.bench.ok(agdx.FORK_CREATE, {"v": 1, "fork_id": fork, **more})["Created"]

    def put(self, offset, fork="f", table=INDEX, partition=0, **fields):
        self.bench.ok(agdx.FORK_PUT, self.row(offset, fork, table, partition, fields=fields))

    def row(self, offset, fork="f", table=INDEX, partition=0, **more):
        place = {"partition_id": partition, "offset": offset, "projection_id": "p", "projection_version": 1}
        return {"v": 1, "fork_id": fork, "table": table, **place, "tombstone": False, **more}

    def hide(self, offset, fork="f"):
        self.bench.ok(agdx.FORK_PUT, self.row(offset, fork, tombstone=True))

    def promote(self, fork="f"):
        return self.bench.ok(agdx.FORK_PROMOTE, {"v": 1, "fork_id": fork})["Promoted"]["rows"]

    def squash(self, fork="f"):
        return self.bench.ok(agdx.FORK_DELETE, {"v": 1, "fork_id": fork})["Deleted"]

    def listed(self):
        forks = self.bench.ok(agdx.FORK_LIST, {"v": 1})["List"]
        return [(fork["fork_id"], fork["status"], fork["row_count"]) for fork in forks]

    async def vans(self, fork="f", **parts):
        return await self.rows("van", "metres", **({"fork": fork} if fork else {}), **parts)


@pytest.fixture
def forks(tmp_path):
    bench = Bench(tmp_path)
    forks = Forking(bench)
    forks.project("van", "metres", "stop")
    forks.bind()
    forks.publish(*TRUNK)
    yield forks
    forks.assert_rebuilds()
    bench.close()


def test_create_answers_the_golden_reply(forks):
    request = dict(cbor.loads(fixture("fork_create.bin")))
    forks.bench.clock.us = 1_717_171_717_000_000
    from desk.stack.engine import Caller

    reply = forks.bench.mutate(agdx.FORK_CREATE, request, Caller(1, 5, "x"))
    assert reply == fixture("fork_reply_created.bin")
    put = forks.bench.mutate(agdx.FORK_PUT, fixture("fork_put.bin"))
    assert cbor.loads(put) == {"Ok": "Written"}


async def test_a_put_changes_adds_and_hides_rows_for_its_fork_only(forks):
    forks.create()
    forks.put(0, metres="150")
    forks.put(1_000, van="v3", metres="7.5")
    forks.hide(1)
    assert await forks.vans() == [("v1", 150.0), ("v3", 7.5)]
    assert await forks.vans(fork=None) == [("v1", 100.0), ("v2", 200.0)]
    assert await forks.rows("stop", fork="f") == [1, None]
    assert await forks.vans(filter=pred("metres", "gte", 100)) == [("v1", 150.0)]
    total = {"group_by": ["van"], "funcs": [agg("sum", "metres"), agg("count")]}
    assert await forks.rows("van", "sum", fork="f", aggregate=total) == [("v1", 150.0), ("v3", 7.5)]
    assert forks.listed() == [("f", "open", 3)]


async def test_the_same_place_again_overwrites(forks):
    forks.create()
    forks.put(1_000, van="v3", metres="1")
    forks.put(1_000, van="v4")
    assert await forks.rows("van", "metres", fork="f", by_key=key(van="v4")) == [("v4", None)]
    assert forks.listed() == [("f", "open", 1)]
    forks.put(0, metres="1")
    forks.hide(0)
    forks.put(0, metres="3")
    assert ("v1", 3.0) in await forks.vans()


async def test_continuous_sees_the_trunk_grow_and_severed_does_not(forks):
    forks.create("live")
    forks.create("frozen", kind="severed")
    forks.publish({"van": "v9", "metres": 9.0})
    assert ("v9", 9.0) in await forks.vans("live")
    assert await forks.vans("frozen") == [("v1", 100.0), ("v2", 200.0)]
    forks.put(2, "frozen", metres="1")  # the trunk's row of that offset is not there for it: a row of its own
    assert (await forks.vans("frozen"))[-1] == (None, 1.0)


async def test_a_severed_fork_outlives_the_trunks_rows(forks):
    forks.create("frozen", kind="severed")
    forks.bind(retention={"kind": "max_rows", "rows": 1}, partitions=0)
    assert await forks.vans(None) == [("v2", 200.0)]
    registry = forks.bench.band.surfaces["registry"]
    forks.publish({"van": "v3", "metres": 1.0})
    forks.bench.clock.forward(400)
    forks.publish({"van": "v4", "metres": 1.0})
    forks.bench.clock.forward(400)
    forks.publish({"van": "v5", "metres": 1.0})
    assert registry.views.forgotten > 0
    assert await forks.vans("frozen") == [("v1", 100.0), ("v2", 200.0)]


async def test_a_child_lies_on_its_parent(forks):
    forks.create("parent")
    forks.put(0, "parent", metres="1", van="p")
    forks.create("child", parent="parent")
    forks.put(0, "child", metres="2")
    forks.put(1, "child", van="own")
    assert await forks.vans("child") == [("p", 2.0), ("own", 200.0)]
    forks.put(5, "parent", van="later", metres="5")
    assert ("later", 5.0) in await forks.vans("child")
    forks.create("still", parent="parent", kind="severed")
    forks.put(6, "parent", van="unseen")
    assert ("unseen", None) not in await forks.vans("still") and ("unseen", None) in await forks.vans("child")
    assert forks.promote("child") == 2
    seen = [("later", 5.0), ("own", 200.0), ("p", 2.0), ("unseen", None)]
    assert await forks.vans("parent", order=order("van")) == seen
    assert await forks.vans(None) == [("v1", 100.0), ("v2", 200.0)]
    assert forks.listed()[:2] == [("parent", "open", 4), ("child", "promoted", 2)]


async def test_a_put_over_what_a_parent_hides_is_a_row_of_its_own(forks):
    forks.create("parent")
    forks.hide(1, "parent")
    forks.create("child", parent="parent")
    forks.put(1, "child", van="back")
    assert await forks.vans("child") == [("v1", 100.0), ("back", None)]


async def test_a_child_keeps_what_it_sees_when_its_parent_goes(forks):
    forks.create("parent")
    forks.put(0, "parent", van="p")
    forks.create("child", parent="parent")
    assert forks.squash("parent") and not forks.squash("parent")
    assert (await forks.vans("child"))[-1] == ("p", 100.0) and [f[0] for f in forks.listed()] == ["child"]
    assert forks.squash("child")
    db = forks.bench.store.db
    assert db.execute("SELECT count(*) FROM fork").get == 0
    assert (
        db.execute(
            f"SELECT count(*) FROM {forks.bench.band.surfaces['registry'].views.get(INDEX).forked}"
        ).get
        == 0
    )


async def test_promotion_lands_on_the_trunk_and_survives_a_rebuild(forks):
    forks.create()
    forks.put(0, metres="150")
    forks.put(1_000, van="v3", note="new")
    forks.hide(1)
    assert forks.promote() == 3
    expected = [("v1", 150.0, None), ("v3", None, "new")]
    assert await forks.rows("van", "metres", "note") == expected
    assert await forks.error(fork="f") == {"ForkNotFound": "f"}
    forks.project("van", ("metres", "/metres", "float"), "stop")
    assert await forks.rows("van", "metres", "note", order=order("van")) == expected
    assert forks.listed() == [("f", "promoted", 3)]
    assert forks.create()["status"] == "open" and forks.listed() == [("f", "open", 0)]
    assert len(await forks.vans()) == 2
    forks.put(1_000, note="newer")
    assert forks.promote() == 1
    assert await forks.rows("note", by_key=key(van="v3")) == ["newer"]


async def test_promoted_rows_of_an_unknown_table_make_it_queryable(forks):
    forks.create()
    forks.put(0, table="plans", n="5", word="x", mixed="1")
    forks.put(1, table="plans", n="7.5", word="7", mixed="true")
    assert await forks.error(index="plans") == {"IndexNotFound": "plans"}
    page = await forks.page(index="plans", fork="f")
    kinds = {f["name"]: f["field_type"]["kind"] for f in page["fields"]}
    assert (kinds["n"], kinds["word"], kinds["mixed"]) == ("double", "string", "string")
    assert plain(page, "n", "word", "mixed") == [(5.0, "x", "1"), (7.5, "7", "true")]
    assert await forks.rows("sum", index="plans", fork="f", aggregate={"funcs": [agg("sum", "n")]}) == [12.5]
    forks.promote()
    assert await forks.rows("n", "word", index="plans") == [(5.0, "x"), (7.5, "7")]


async def test_a_fork_never_decides_a_trunk_columns_kind(forks):
    forks.project("van", "metres", "stop", "code")
    forks.create()
    forks.put(0, code="12")
    forks.publish({"van": "v7", "code": "abc"})
    page = await forks.page()
    assert plain(page, "code") == [None, None, "abc"] and not any("doc" in f for f in page["fields"])
    assert await forks.rows("code", fork="f", order=order("code")) == [None, "12", "abc"]


def test_text_that_is_no_number_is_refused_where_the_column_holds_numbers(forks):
    forks.create()
    error = forks.bench.err(agdx.FORK_PUT, forks.row(5, fields={"metres": "abc", "other": "x"}))
    assert error == {"InvalidFork": 'field metres holds double values, and this is a string value "abc"'}
    assert forks.listed() == [("f", "open", 0)]


async def test_payload_and_vector_come_with_a_put(forks):
    forks.create()
    forks.bench.ok(agdx.FORK_PUT, forks.row(0, payload=b"mine"))
    forks.bench.ok(agdx.FORK_PUT, forks.row(9, fields={"van": "near"}, embedding="[3, 4]"))
    page = await forks.page(fork="f", select={"payload": True}, order=order("van"))
    assert plain(page, "__laser_original_payload")[:2] == [None, b"mine"]
    near = await forks.page(fork="f", vector={"field": "embedding", "embedding": [0.6, 0.8], "top_k": 3})
    assert plain(near, "van") == ["near"] and near["rows"][0]["score"] == 0
    assert forks.promote() == 2
    page = await forks.page(select={"payload": True, "fields": ["van"]}, order=order("van"))
    assert plain(page, "__laser_original_payload")[1] == b"mine"
    assert plain(await forks.page(vector={"field": "e", "embedding": [3, 4], "top_k": 3}), "van") == ["near"]


@pytest.mark.parametrize(
    "fork_id", ["", "a b", "a/b", "x" * 129, "stream:desk", "stream:/x", "stream:a/b/c", "é"]
)
def test_odd_ids_are_refused(forks, fork_id):
    assert list(forks.bench.err(agdx.FORK_CREATE, {"v": 1, "fork_id": fork_id})) == ["InvalidFork"]


def test_what_cannot_be_done_says_why(forks):
    bench = forks.bench
    assert bench.err(agdx.FORK_PUT, forks.row(1)) == {"NotFound": "f"}
    assert bench.err(agdx.FORK_PROMOTE, {"v": 1, "fork_id": "f"}) == {"NotFound": "f"}
    assert forks.squash() is False
    forks.create(tables=[INDEX])
    assert bench.err(agdx.FORK_CREATE, {"v": 1, "fork_id": "f"}) == {"Conflict": "fork f is already open"}
    assert list(bench.err(agdx.FORK_PUT, forks.row(1, table="other"))) == ["InvalidFork"]
    assert list(bench.err(agdx.FORK_PUT, forks.row(2**63))) == ["InvalidFork"]
    assert list(bench.err(agdx.FORK_PUT, forks.row(1, embedding="[x]"))) == ["InvalidFork"]
    forks.promote()
    assert bench.err(agdx.FORK_PUT, forks.row(1)) == {"Conflict": "fork f is promoted"}
    assert bench.err(agdx.FORK_LIST, {"v": 2}) == {"Version": {"expected": 1, "got": 2}}


async def test_pages_of_a_fork_see_one_moment(forks):
    forks.create()
    forks.put(7, van="f7")
    first = await forks.page(fork="f", limit=2)
    forks.put(0, metres="1")
    forks.put(8, van="f8")
    rest = await forks.page(fork="f", limit=2, cursor=first["page"]["next_cursor"])
    assert plain(first, "van") + plain(rest, "van") == ["v1", "v2", "f7"]


async def test_a_restart_keeps_forks(forks):
    forks.create(kind="severed")
    forks.put(0, metres="1")
    forks.bench.restart()
    forks.publish({"van": "v9", "metres": 1.0})
    assert await forks.vans() == [("v2", 200.0), ("v1", 1.0)]


async def test_a_dropped_view_leaves_forks_their_rows(forks):
    forks.create()
    forks.put(1_000, van="mine")
    source = {"stream": "desk", "topic": "events"}
    forks.control({"RemoveBinding": {"source": source, "projection_ref": None}})
    assert await forks.error() == {"IndexNotFound": INDEX}
    assert await forks.rows("van", fork="f") == ["mine"]
    forks.squash()
    assert forks.bench.band.surfaces["registry"].views.get(INDEX) is None
