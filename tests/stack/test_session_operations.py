"""What acts on a session: control requests, state deltas, and what other surfaces link to it."""

import itertools

import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.agents import enveloped, plain, start
from tests.stack.session_index import (
    ONE,
    STREAM,
    TWO,
    ask,
    changes,
    control_partition,
    delta,
    digest,
    info,
    items,
    links,
    put,
    registered,
    state,
    words,
    write,
)


@pytest.fixture
def bench(tmp_path):
    yield from registered(tmp_path)


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


def test_a_delta_that_doubles_the_document_again_and_again_is_rejected(bench):
    copy = {"op": "copy", "from": "/a", "path": "/a/-"}
    text = put("/a", "x" * 600_000)
    write(bench, start(ONE), delta(0, put("/a", [0]), *[copy] * 24), delta(0, text, op_id="op-2"))
    write(bench, delta(1, {**text, "path": "/b"}, op_id="op-3"), delta(1, put("/a", 2), op_id="op-4"))
    view = state(bench)
    assert (view["revision"], view["document"]) == (2, {"a": 2})
    assert [h["outcome"] for h in view["history"]] == ["rejected", "applied", "rejected", "applied"]
    assert view["history"][0]["reason"] == "a patch copies and compares at most 1048576 bytes"
    assert view["history"][2]["reason"] == "a state document has at most 1048576 bytes"


def test_a_document_that_becomes_deeper_than_clients_can_read_is_rejected(bench):
    deeper = {"op": "copy", "from": "", "path": "/a"}
    write(bench, start(ONE), delta(0, *[deeper] * 127), delta(1, deeper, op_id="op-2"))
    write(bench, delta(2, deeper, op_id="op-3"), delta(2, put("/b", []), op_id="op-4"))
    view = state(bench)
    assert [h["outcome"] for h in view["history"]] == ["applied", "applied", "rejected", "applied"]
    assert view["history"][2]["reason"] == "a state document has at most 128 levels"
    assert (view["revision"], view["document"]["b"]) == (3, [])


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
