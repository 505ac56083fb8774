"""The session index rebuilt equals the one that grew, and every reply has the golden layout."""

import pytest

from desk.stack.wire import agdx, cbor
from desk.stack.wire.records import id_text
from tests.stack.agents import enveloped, plain, start, status
from tests.stack.banding import NOW_US
from tests.stack.sdist import fixture
from tests.stack.session_index import (
    ONE,
    STREAM,
    THREE,
    TWO,
    ask,
    changes,
    control,
    delta,
    events,
    golden,
    info,
    put,
    register,
    registered,
    state,
    write,
)


@pytest.fixture
def bench(tmp_path):
    yield from registered(tmp_path)


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


def layout(value):
    """Keys in order and kinds of leaves, lists by their first item."""
    if isinstance(value, dict):
        return [(key, layout(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [layout(value[0])] if value else []
    return type(value).__name__


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
