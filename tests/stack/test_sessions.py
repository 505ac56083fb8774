"""The session index: what a record changes is in every read at once."""

import pytest

from desk.stack.wire import agdx
from desk.stack.wire.records import id_text
from tests.stack.agents import enveloped, plain, start, status
from tests.stack.session_index import (
    ONE,
    STREAM,
    TWO,
    changes,
    events,
    info,
    items,
    links,
    registered,
    words,
    write,
)


@pytest.fixture
def bench(tmp_path):
    yield from registered(tmp_path)


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
