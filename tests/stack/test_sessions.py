"""The session index: what a record changes is in every read at once, and a rebuild gives the same index."""

import hashlib
import itertools
import json

import pytest
import xxhash

from desk.stack.wire import agdx, cbor
from desk.stack.wire.records import id_text
from tests.stack.agents import enveloped, plain, session_id, start, status
from tests.stack.banding import NOW_US, Bench
from tests.stack.sdist import fixture

STREAM, LANE = "agents", "agent.sessions"
ONE, TWO, THREE = session_id(2), session_id(3), session_id(4)


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    bench.log.ensure(STREAM, LANE, 4)
    for topic in ("agent.control", "agent.heartbeats", "agent.memory", "agent.dlq", "agent.registry"):
        bench.log.ensure(STREAM, topic, 2)
    register(bench)
    yield bench
    bench.close()


def control(bench, command):
    reply = cbor.loads(
        bench.send(agdx.CONTROL_PUBLISH, bench.frame({"v": 1, "timestamp_micros": 0, "command": command}))
    )
    return cbor.loads(reply["reply"]) if "reply" in reply else reply


def register(bench, topics="All"):
    reply = control(bench, {"RegisterSessionSource": {"stream": STREAM, "topics": topics}})
    assert reply["code"] == "ok", reply


def write(bench, *records, topic=LANE, partition=1):
    bench.clock.forward(0.001)
    return bench.publish(STREAM, topic, records, partition=partition)


def ask(bench, code, **request):
    return bench.ok(code, {"stream": STREAM, **request})


def info(bench, session=ONE):
    return ask(bench, agdx.SESSION_GET, id=session)["Info"]


def items(bench, **filters):
    page = ask(bench, agdx.SESSION_LIST, limit=0, want_total=False, **filters)["Page"]
    return [item["id"] for item in page["items"]]


def events(bench, session=ONE, **more):
    request = {"id": session, "limit": 0, "fixed_frontier": False, **more}
    return ask(bench, agdx.SESSION_EVENTS, **request)["Events"]


def words(bench, session=ONE):
    return [event["display"] for event in events(bench, session)["items"]]


def links(bench, session=ONE, **more):
    found = ask(bench, agdx.SESSION_LINKS, id=session, **more)["Links"]["links"]
    return [(link["surface"], link["resource"], link["item"], link["relation"]) for link in found]


def changes(bench, after=0, **more):
    return ask(bench, agdx.SESSION_CHANGES, after=after, limit=0, **more)["Changes"]


def control_partition(session, partitions=2):
    return xxhash.xxh32_intdigest(id_text(session).encode()) % partitions


# ---- lifecycle and counters


def test_a_session_is_there_as_soon_as_its_start_is_published(bench):
    write(bench, start(ONE, label="ticket-7", namespace="desk", tags=["vip"]))
    summary = info(bench)
    assert (summary["status"], summary["label"], summary["agent"]) == ("active", "ticket-7", "planner")
    assert summary["started_at"] == summary["last_event_at"] == bench.clock.us
    assert items(bench) == [ONE]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("submitted", "submitted"),
        ("paused", "paused"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("rejected", "failed"),
        ("canceled", "canceled"),
    ],
)
def test_a_status_record_moves_the_session(bench, state, expected):
    write(bench, start(ONE), status(ONE, state))
    summary = info(bench)
    assert summary["status"] == expected
    assert ("ended_at" in summary) == (expected in ("completed", "failed", "canceled"))
    write(bench, status(ONE, "working"))
    assert info(bench)["status"] == "active"


def test_a_start_after_the_end_opens_it_again(bench):
    write(bench, start(ONE), status(ONE, "completed"), start(ONE))
    assert info(bench)["status"] == "active" and "ended_at" not in info(bench)


def test_calls_tokens_cost_and_errors_are_counted(bench):
    usage = {"input_tokens": 100, "output_tokens": 20, "cost_micros": 1250}
    write(
        bench,
        start(ONE, budget={"tokens": 100}),
        enveloped(ONE, "command", "chat"),
        enveloped(ONE, "response", "chat", usage=usage, finish_reason="stop"),
        enveloped(ONE, "command", "execute_tool", tool="lookup"),
        enveloped(ONE, "response", "execute_tool", tool="lookup"),
        enveloped(ONE, "error", "chat"),
    )
    summary = info(bench)
    counted = {
        k: summary[k] for k in ("events", "model_calls", "tool_calls", "tokens_in", "tokens_out", "errors")
    }
    assert counted == {
        "events": 6,
        "model_calls": 1,
        "tool_calls": 1,
        "tokens_in": 100,
        "tokens_out": 20,
        "errors": 1,
    }
    assert summary["over_budget"] and summary["cost_micros"] == 1250
    assert words(bench) == [
        "session.started",
        "model.request",
        "model.response",
        "tool.call",
        "tool.result",
        "error",
    ]
    assert events(bench)["items"][2]["summary"] == {"finish_reason": "stop"}


def test_idle_is_silence_beyond_the_timeout_and_a_heartbeat_ends_it(bench):
    write(bench, start(ONE, idle_timeout_micros=5_000_000))
    bench.clock.forward(5)
    assert not info(bench)["idle"]
    bench.clock.forward(1)
    assert info(bench)["idle"]
    beat = {"process": "p", "stream": STREAM, "sessions": [ONE]}
    before = changes(bench)["rows"]
    write(bench, enveloped(ONE, "status", "progress", beat), topic="agent.heartbeats")
    assert not info(bench)["idle"] and info(bench)["last_heartbeat_at"] == bench.clock.us
    assert info(bench)["events"] == 1 and changes(bench)["rows"] == before


def test_parked_work_is_held_until_unparked(bench):
    write(
        bench,
        start(ONE),
        enveloped(ONE, "event", "session_parked"),
        enveloped(ONE, "event", "session_parked"),
    )
    assert info(bench)["held"] == 2
    write(bench, enveloped(ONE, "event", "session_unparked"))
    assert info(bench)["held"] == 1


def test_a_conversation_without_a_lifecycle_is_not_listed_but_counts_once_it_is(bench):
    write(bench, plain(ONE), enveloped(ONE, "event"))
    assert items(bench) == []
    assert bench.err(agdx.SESSION_GET, {"stream": STREAM, "id": ONE}) == {"NotFound": id_text(ONE)}
    write(bench, start(ONE))
    assert info(bench)["events"] == 3
    assert changes(bench)["rows"][0]["sessions"] == [ONE]


def test_what_happens_after_the_end_says_so(bench):
    write(bench, start(ONE), status(ONE, "completed"), enveloped(ONE, "event"), plain(ONE))
    assert [event.get("after_end") for event in events(bench)["items"]] == [None, None, True, True]


# ---- descent


def test_a_plain_record_that_names_parent_and_root_opens_a_child_session(bench):
    write(bench, start(ONE))
    write(bench, plain(TWO, agent="critic", parent=id_text(ONE), root=id_text(ONE)))
    child = info(bench, TWO)
    assert (child["status"], child["parent"], child["root"], child["agent"]) == ("active", ONE, ONE, "critic")
    assert sorted(items(bench, root=ONE)) == [ONE, TWO]
    assert links(bench) == [("child", STREAM, id_text(TWO), "touched")]


def test_a_started_child_is_linked_from_its_parent(bench):
    write(bench, start(ONE), start(TWO, parent=ONE, root=ONE))
    assert info(bench, TWO)["parent"] == ONE
    assert links(bench, surface="child") == [("child", STREAM, id_text(TWO), "touched")]
    assert sorted(changes(bench)["rows"][-1]["sessions"]) == [ONE, TWO]


# ---- control


def test_control_counts_only_on_the_sessions_route(bench):
    route = control_partition(ONE)
    write(bench, start(ONE))
    write(bench, enveloped(ONE, "command", "session_pause"), topic="agent.control", partition=route)
    assert info(bench)["pause_requested"] and words(bench)[-1] == "session.control"
    write(bench, enveloped(ONE, "command", "session_resume"), topic="agent.control", partition=1 - route)
    assert info(bench)["pause_requested"] and info(bench)["flags"] == {"control_conflict": True}
    write(bench, enveloped(ONE, "command", "session_resume"), topic="agent.control", partition=route)
    write(bench, enveloped(ONE, "command", "session_cancel"), topic="agent.control", partition=route)
    assert not info(bench)["pause_requested"] and info(bench)["cancel_requested"]
    assert info(bench)["status"] == "active"
    write(bench, enveloped(ONE, "command", "force_cancel"), topic="agent.control", partition=route)
    assert info(bench)["status"] == "canceled"


def test_a_control_operation_on_the_lane_is_shown_and_ignored(bench):
    write(bench, start(ONE), enveloped(ONE, "command", "session_cancel"))
    assert words(bench)[-1] == "unauthorized_control" and not info(bench)["cancel_requested"]


# ---- state


def delta(base, *operations, op_id="op"):
    return enveloped(
        ONE, "event", "state_delta", {"base_revision": base, "patch": list(operations), "op_id": op_id}
    )


def put(path, value):
    return {"op": "add", "path": path, "value": value}


def digest(document):
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()


def state(bench):
    return ask(bench, agdx.SESSION_STATE, id=ONE, history_limit=0)["State"]


def test_deltas_apply_at_their_revision_and_history_chains_digests(bench):
    write(bench, start(ONE))
    assert state(bench) == {"revision": 0, "document": {}, "complete": True}
    write(
        bench,
        delta(0, put("/a", 1), op_id="op-1"),
        delta(0, put("/b", 2), op_id="op-2"),
        delta(1, put("/b", 2), op_id="op-1"),
        delta(1, put("/none/b", 2), op_id="op-3"),
        delta(1, put("/b", 2), op_id="op-4"),
    )
    view = state(bench)
    assert (view["revision"], view["document"], view["complete"]) == (2, {"a": 1, "b": 2}, True)
    history = view["history"]
    assert [h["outcome"] for h in history] == ["applied", "stale", "duplicate", "rejected", "applied"]
    assert [h["op_id"] for h in history] == ["op-1", "op-2", "op-1", "op-3", "op-4"]
    assert history[0]["old_digest"] == digest({}) and history[-1]["new_digest"] == digest({"a": 1, "b": 2})
    assert all(one["new_digest"] == other["old_digest"] for one, other in itertools.pairwise(history))
    assert "reason" in history[3]


def test_a_snapshot_sets_the_baseline_and_a_later_one_counts_at_its_revision_only(bench):
    snapshot = lambda base, doc: enveloped(  # noqa: E731
        ONE, "event", "state_snapshot", {"base_revision": base, "document": doc}
    )
    write(
        bench,
        start(ONE),
        snapshot(7, {"x": 1}),
        snapshot(3, {"x": 2}),
        delta(7, put("/y", 2)),
        snapshot(8, {"z": 1}),
    )
    view = state(bench)
    assert (view["revision"], view["document"]) == (8, {"z": 1})
    assert [h["outcome"] for h in view["history"]] == ["applied", "stale", "applied", "applied"]
    first = view["history"][0]
    assert first["old_digest"] == first["new_digest"] == digest({"x": 1})


# ---- links


def test_memory_recall_and_managed_writes_are_linked(bench):
    item = cbor.dumps({"Item": {"id": "i-1", "kind": "fact", "body": [1]}})
    write(bench, start(ONE), enveloped(ONE, "event", "context_retrieved", {"items": [["i-9", 0.5]]}))
    write(bench, plain(ONE, item, mem="stream:agents/notes"), topic="agent.memory")
    session = {"stream": STREAM, "session": ONE}
    row = {"v": 1, "namespace": "stream:agents/n", "key": b"k", "value": b"v", "session": session}
    for _ in range(2):
        bench.ok(agdx.KV_SET, row)
    assert links(bench) == [
        ("kv", "stream:agents/n", "k", "wrote"),
        ("memory", "", "i-9", "recalled"),
        ("memory", "stream:agents/notes", "i-1", "wrote"),
    ]
    assert words(bench)[-1] == "memory.created"
    (kv,) = ask(bench, agdx.SESSION_LINKS, id=ONE, surface="kv")["Links"]["links"]
    assert kv["first"] < kv["last"] and len(kv["last"]) == 20
    assert changes(bench)["rows"][-1]["origin"] == "links"


def test_a_dead_letter_is_an_error_of_its_session(bench):
    write(bench, start(ONE))
    write(bench, plain(ONE), topic="agent.dlq")
    assert words(bench)[-1] == "dead_letter" and info(bench)["errors"] == 1


def test_records_that_say_nothing_sensible_are_shown_as_such(bench):
    broken = (b"\xff", start(ONE)[1])
    other = (start(TWO)[0], start(ONE)[1])
    write(bench, start(ONE), broken, other, (b"no conversation", {}))
    assert words(bench) == ["session.started", "undecodable", "invalid"]
    assert items(bench) == [ONE]


# ---- reads


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


# ---- registration


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


TABLES = {
    "session": "id, listed, status, label, agent, parent, root, started_at, ended_at, first_event_at, last_event_at,"
    " last_heartbeat_at, events, model_calls, tool_calls, tokens_in, tokens_out, cost_micros, errors, held,"
    " pause_requested, cancel_requested, control_conflict, budget, sdk, idle_timeout, search",
    "session_event": '(SELECT id FROM session WHERE num = session), at_us, topic, partition, "offset", item',
    "session_source": "(SELECT id FROM session WHERE num = session), topic, partition",
    "session_link": "(SELECT id FROM session WHERE num = session), surface, resource, item, relation, first, last",
    "session_state": "(SELECT id FROM session WHERE num = session), revision, complete, document, digest",
    "session_history": "(SELECT id FROM session WHERE num = session), seq, op_id, item",
}


def contents(bench):
    return {
        table: sorted(bench.store.db.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
        for table, columns in TABLES.items()
    }


def test_an_index_rebuilt_from_the_log_equals_the_one_that_grew_with_it(bench):
    usage = {"input_tokens": 3, "output_tokens": 2}
    write(bench, start(ONE, label="a", budget={"tokens": 4}), delta(0, put("/a", 1)))
    write(bench, start(TWO, parent=ONE, root=ONE), partition=3)
    write(bench, plain(THREE, parent=id_text(ONE)), partition=0)
    write(bench, enveloped(ONE, "response", "chat", usage=usage), delta(1, put("/b", 1), op_id="2"))
    write(bench, enveloped(ONE, "command", "session_pause"), topic="agent.control", partition=0)
    beat = {"process": "p", "stream": STREAM, "sessions": [ONE]}
    write(bench, enveloped(ONE, "status", "progress", beat), topic="agent.heartbeats")
    write(bench, plain(ONE, cbor.dumps({"Forget": {"target": "x"}}), mem="n"), topic="agent.memory")
    write(bench, status(TWO, "completed"), partition=3)
    grown, series = contents(bench), changes(bench)["series"]
    bench.restart()
    assert contents(bench) == grown and changes(bench)["series"] == series
    control(bench, {"RemoveSessionSource": {"stream": STREAM}})
    register(bench)
    assert contents(bench) == grown
    assert changes(bench)["series"] != series


# ---- golden layouts


def layout(value):
    """Keys in order and kinds of leaves, lists by their first item."""
    if isinstance(value, dict):
        return [(key, layout(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [layout(value[0])] if value else []
    return type(value).__name__


def golden(name):
    return cbor.loads(fixture(f"session_reply_{name}.bin"))["Ok"]


def same_layout(ours, theirs, *, but=()):
    """Our reply has the golden keys in the golden order; `but` are the optional ones it has no use for."""

    def without(value):
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key not in but}
        return [without(item) for item in value] if isinstance(value, list) else value

    assert layout(without(ours)) == layout(without(theirs))


def test_every_reply_kind_has_the_golden_layout(bench):
    write(bench, start(TWO))
    fields = {"label": "incident", "namespace": "ops", "parent": TWO, "root": TWO, "budget": {"tokens": 1}}
    usage = {"input_tokens": 100, "output_tokens": 50, "cost_micros": 1250}
    write(bench, start(ONE, **fields), delta(0, put("/tasks", ["triage"])))
    payload, headers = enveloped(
        ONE, "response", "chat", correlation=TWO, cause_at=bytes(20), usage=usage, finish_reason="stop"
    )
    write(bench, (payload, {**headers, "agdx.to": ("string", b"*")}))
    beat = {"process": "p", "stream": STREAM, "sessions": [ONE]}
    write(bench, enveloped(ONE, "status", "progress", beat), topic="agent.heartbeats")
    row = {
        "v": 1,
        "namespace": "n",
        "key": b"k",
        "value": b"v",
        "session": {"stream": STREAM, "session": ONE},
    }
    bench.ok(agdx.KV_SET, row)

    same_layout({"Info": info(bench)}, golden("info"), but=("flags",))
    page = ask(bench, agdx.SESSION_LIST, limit=1, want_total=True, agent="planner")
    assert page["Page"]["items"][0]["id"] == ONE
    same_layout(page, golden("page"), but=("flags",))
    timeline = events(bench)
    timeline["items"] = timeline["items"][-1:]
    same_layout({"Events": timeline}, golden("events"), but=("cursor", "gaps"))
    same_layout({"State": state(bench)}, golden("state"), but=("frontier",))
    same_layout(ask(bench, agdx.SESSION_LINKS, id=ONE, surface="kv"), golden("links"))
    same_layout(ask(bench, agdx.SESSION_SOURCES, id=ONE), golden("sources"))
    same_layout({"Changes": changes(bench)}, golden("changes"), but=("series",))
    assert changes(bench)["rows"][-1]["origin"] == "links"


@pytest.mark.parametrize(
    "name", ["get", "list", "events", "state", "links", "sources", "sources_lane_only", "changes"]
)
def test_the_golden_requests_are_understood(bench, name):
    code = getattr(agdx, f"SESSION_{name.removesuffix('_lane_only').upper()}")
    request = cbor.loads(fixture(f"session_{name}.bin"))
    request.pop("cursor", None)  # the golden cursor is not one of ours
    write(bench, start(ONE))
    assert list(cbor.loads(bench.read(code, cbor.dumps(request)))) == ["Ok"]
    assert bench.clock.us > NOW_US
