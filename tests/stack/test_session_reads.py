"""Reading the session index: lists, timelines, changes; which streams and topics are in it."""

import pytest

from desk.stack.wire import agdx
from tests.stack.agents import enveloped, plain, session_id, start, status
from tests.stack.sdist import fixture
from tests.stack.session_index import (
    LANE,
    ONE,
    STREAM,
    THREE,
    TWO,
    ask,
    changes,
    control,
    events,
    golden,
    info,
    items,
    register,
    registered,
    write,
)


@pytest.fixture
def bench(tmp_path):
    yield from registered(tmp_path)


def test_lists_filter_and_page_newest_activity_first(bench):
    for number in range(10, 16):
        write(
            bench, start(session_id(number), label=f"ticket-{number}", tags=["VIP"] if number == 12 else [])
        )
    write(bench, status(session_id(11), "completed"))
    assert items(bench)[0] == session_id(11)
    assert items(bench, status="completed") == [session_id(11)]
    assert items(bench, label_prefix="ticket-1")[-1] == session_id(10)
    assert items(bench, text="vip") == [session_id(12)]
    assert items(bench, agent="nobody") == []
    seen, cursor = [], {}
    while True:
        page = ask(bench, agdx.SESSION_LIST, limit=4, want_total=True, **cursor)["Page"]
        seen += [item["id"] for item in page["items"]]
        assert page["total"] == 6
        if "cursor" not in page:
            break
        cursor = {"cursor": page["cursor"]}
    assert seen == items(bench) and len(seen) == 6


def test_a_timeline_pages_in_broker_order_and_a_fixed_frontier_ends_where_it_began(bench):
    write(bench, start(ONE))
    for partition in (0, 2, 1, 3):
        write(bench, enveloped(ONE, "event"), partition=partition)
    first = events(bench, limit=2, fixed_frontier=True)
    write(bench, enveloped(ONE, "event"))
    rest = events(bench, limit=100, fixed_frontier=True, cursor=first["cursor"])
    assert len(first["items"]) == 2 and len(rest["items"]) == 3 and "cursor" not in rest
    assert len(events(bench)["items"]) == 6
    times = [event["broker_ts"] for event in events(bench)["items"]]
    assert times == sorted(times)
    assert {(r["partition_id"], r["first"], r["last"]) for r in events(bench)["ranges"]} == {
        (0, 0, 0),
        (1, 0, 2),
        (2, 0, 0),
        (3, 0, 0),
    }
    wrong = {"stream": STREAM, "id": ONE, "limit": 0, "fixed_frontier": False, "cursor": "page"}
    assert list(bench.err(agdx.SESSION_EVENTS, wrong)) == ["Invalid"]


def test_changes_number_every_append_and_know_their_series(bench):
    assert changes(bench) == {"rows": [], "floor": 1, "resync": False, "series": changes(bench)["series"]}
    write(bench, start(ONE), start(TWO))
    write(bench, plain(THREE))
    write(bench, enveloped(ONE, "event"))
    view = changes(bench)
    assert [(row["seq"], row["sessions"]) for row in view["rows"]] == [(1, [ONE, TWO]), (2, [ONE])]
    assert len(view["rows"][0]["positions"]) == 2
    assert changes(bench, after=1)["rows"] == view["rows"][1:]
    other = changes(bench, series=view["series"] + 1)
    assert other == {"rows": [], "floor": 2, "resync": True, "series": view["series"]}
    bench.store.db.execute("DELETE FROM session_change WHERE seq = 1")
    assert changes(bench)["resync"] and changes(bench)["floor"] == 2
    assert not changes(bench, after=1)["resync"]


def test_sources_name_the_partitions_and_the_lane(bench):
    write(bench, start(ONE), enveloped(ONE, "event"), partition=2)
    lane = bench.log.topic_info(STREAM, LANE)
    view = ask(bench, agdx.SESSION_SOURCES, id=ONE)["Sources"]
    assert view["lane"] == [lane.id, lane.created_us, 4]
    (source,) = view["sources"]
    assert (source["partition_id"], source["folded"], source["head"], source["retained_from"]) == (2, 1, 1, 0)
    bare = ask(bench, agdx.SESSION_SOURCES, id=TWO, lane_only=True)["Sources"]
    assert bare == {"sources": [], "lane": view["lane"]}


def test_a_recreated_stream_keeps_the_lane_as_registered_and_is_not_folded(bench):
    write(bench, start(ONE))
    before = ask(bench, agdx.SESSION_SOURCES, id=ONE, lane_only=True)
    bench.log.drop(STREAM)
    bench.clock.forward(1)
    bench.log.ensure(STREAM, LANE, 4)
    register(bench)
    write(bench, start(TWO))
    assert ask(bench, agdx.SESSION_SOURCES, id=ONE, lane_only=True) == before
    assert items(bench) == [ONE]
    assert control(bench, {"RemoveSessionSource": {"stream": STREAM}})["code"] == "ok"
    register(bench)
    assert items(bench) == [TWO]


def test_after_removal_reads_answer_not_registered_with_the_golden_bytes(bench):
    control(bench, {"RemoveSessionSource": {"stream": STREAM}})
    write(bench, start(ONE))
    assert bench.read(agdx.SESSION_GET, fixture("session_get.bin")) == fixture("session_reply_error.bin")
    assert bench.store.db.execute("SELECT count(*) FROM session").get == 0


def test_only_the_named_topics_are_folded(bench):
    register(bench, {"Named": [LANE]})
    write(bench, start(ONE))
    write(bench, plain(ONE), topic="agent.memory")
    assert info(bench)["events"] == 1
    register(bench)
    assert info(bench)["events"] == 2
    write(bench, plain(ONE), topic="agent.registry")
    assert info(bench)["events"] == 2


def test_a_stream_registered_before_it_exists_is_folded_from_its_first_record(bench):
    control(bench, {"RegisterSessionSource": {"stream": "later", "topics": "All"}})
    bench.clock.forward(1)
    lane = bench.log.ensure("later", LANE, 2)
    bench.publish("later", LANE, [start(ONE)])
    request = {"stream": "later", "id": ONE}
    assert bench.ok(agdx.SESSION_GET, request)["Info"]["status"] == "active"
    assert bench.ok(agdx.SESSION_SOURCES, request)["Sources"]["lane"] == [lane.id, lane.created_us, 2]


def test_what_retention_took_before_the_registration_is_a_gap(bench):
    control(bench, {"RemoveSessionSource": {"stream": STREAM}})
    write(bench, start(ONE), enveloped(ONE, "event"), enveloped(ONE, "event"))
    write(bench, start(TWO), partition=2)
    bench.log.forget(STREAM, LANE, 1, before=2)
    register(bench)
    write(bench, start(ONE))
    timeline = events(bench)
    assert [event["at"]["Message"]["offset"] for event in timeline["items"]] == [2, 3]
    (gap,) = timeline["gaps"]
    assert (gap["partition_id"], gap["from"], gap["to"], gap["reason"]) == (1, 0, 1, "expired_before_fold")
    assert list(gap) == list(golden("events")["Events"]["gaps"][0])
    assert "gaps" not in events(bench, TWO)
