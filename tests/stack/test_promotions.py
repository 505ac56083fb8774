"""What forks promoted stays promoted however the view comes about: live, or rebuilt from the log."""

import pytest

from desk.stack.wire import agdx
from tests.stack.banding import Bench
from tests.stack.viewing import INDEX, Views


@pytest.fixture
def views(tmp_path):
    bench = Bench(tmp_path)
    made = Views(bench)
    made.project("n", "state")
    made.bind()
    yield made
    bench.close()


def fork(views: Views, name: str) -> None:
    views.bench.ok(agdx.FORK_CREATE, {"v": 1, "fork_id": name, "kind": "continuous"})


def put(views: Views, name: str, offset: int, state: str | None) -> None:
    """Change a row's state, or take the row away."""
    change = {"tombstone": True} if state is None else {"fields": {"state": state}}
    place = {
        "table": INDEX,
        "partition_id": 0,
        "offset": offset,
        "projection_id": "p",
        "projection_version": 1,
    }
    views.bench.ok(agdx.FORK_PUT, {"v": 1, "fork_id": name, **place, **change})


def promote(views: Views, *names: str) -> None:
    for name in names:
        assert views.bench.ok(agdx.FORK_PROMOTE, {"v": 1, "fork_id": name}) == {"Promoted": {"rows": 1}}


async def test_a_change_promoted_over_a_row_that_was_taken_away(views):
    views.publish({"n": 0, "state": "first"}, {"n": 1, "state": "second"})
    fork(views, "a")
    fork(views, "b")
    put(views, "a", 0, None)
    put(views, "b", 0, "new")
    promote(views, "a", "b")
    assert sorted(await views.rows("state")) == ["new", "second"]
    assert None in await views.rows("n"), "nothing of the row that was taken away comes back"
    views.assert_rebuilds()
    fork(views, "c")
    put(views, "c", 0, "newer")
    promote(views, "c")
    assert sorted(await views.rows("state")) == ["newer", "second"]
    views.assert_rebuilds()


@pytest.mark.parametrize("state", ["early", None])
async def test_a_change_promoted_before_its_record_came(views, state):
    views.publish({"n": 0, "state": "first"})
    fork(views, "a")
    put(views, "a", 1, state)
    promote(views, "a")
    assert await views.rows("state") == (["first"] if state is None else ["first", "early"])
    views.assert_rebuilds()
    views.publish({"n": 1, "state": "late"}, {"n": 2, "state": "last"})
    expected = [(0, "first"), (2, "last")] if state is None else [(0, "first"), (1, "early"), (2, "last")]
    assert sorted(await views.rows("n", "state")) == expected
    views.assert_rebuilds()


async def test_a_row_taken_away_twice(views):
    views.publish({"n": 0, "state": "first"})
    for name, state in (("a", None), ("b", "again"), ("c", None), ("d", "and again")):
        fork(views, name)
        put(views, name, 0, state)
        promote(views, name)
        views.assert_rebuilds()
    assert await views.rows("n", "state") == [(None, "and again")]
