"""Memory records become rows: items by id, named items by their last write, forgetting for good."""

import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.banding import NOW_US, Bench
from tests.stack.sdist import fixture

SPACE = "stream:agents/notes"
ID = "01KWM3K3XEP3NP5TN850J17YBP"
CONVERSATION = "01KWM3K3XEP3NP5TN850J17YBQ"
HEADERS = {
    "agdx.mem.ns": ("string", SPACE.encode()),
    "agdx.mem.user": ("string", b"reader"),
    "agdx.mem.app": ("string", b"desk"),
    "gen_ai.conversation.id": ("string", CONVERSATION.encode()),
    "gen_ai.agent.id": ("string", b"planner"),
}


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    bench.log.ensure("agents", "agent.memory", 4)
    yield bench
    bench.close()


def write(bench, record, headers=HEADERS, topic="agent.memory"):
    payload = record if isinstance(record, bytes) else cbor.dumps(record)
    return bench.publish("agents", topic, [(payload, headers)], partition=3)


def item(body=b"v", identity=ID):
    return {"Item": {"id": identity, "kind": "fact", "body": list(body)}}


def entries(bench, **bounds):
    request = {"v": 1, "namespace": SPACE, "limit": 0, **bounds}
    return bench.ok(agdx.KV_SCAN, request)["Page"]["entries"]


def test_an_item_is_a_row_with_the_scope_of_the_golden_entry(bench):
    golden = cbor.loads(fixture("kv_entry_memory_scope.bin"))
    offset = write(bench, item(golden["value"]))
    (row,) = entries(bench)
    assert (row["key"], row["value"]) == (ID.encode(), golden["value"])
    info = bench.log.topic_info("agents", "agent.memory")
    source = {"stream": info.stream_id, "topic": info.id, "partition": 3, "offset": offset}
    golden["scope"]["source"]["Message"] = {**source, "generation": info.created_us}
    golden["scope"]["timestamp_micros"] = NOW_US
    assert cbor.dumps(row["scope"]) == cbor.dumps(golden["scope"])
    assert row["source"] == row["scope"]["source"]


def test_the_golden_records_are_remembered_and_forgotten(bench):
    write(bench, fixture("memory_item_origin.bin"))
    assert [row["value"] for row in entries(bench)] == [b"cache depends on store"]
    assert len(entries(bench, conversation=CONVERSATION)) == 1
    write(bench, fixture("memory_feedback_scoped.bin"))
    write(bench, fixture("memory_forget_scoped.bin"))
    assert entries(bench) == []


def test_the_first_of_a_recalled_item_wins_and_a_forgotten_one_stays_away(bench):
    write(bench, item(b"first"))
    write(bench, item(b"second"))
    assert [(row["value"], row["version"]) for row in entries(bench)] == [(b"first", 1)]
    write(bench, {"Forget": {"target": ID}})
    write(bench, item(b"third"))
    assert entries(bench) == []


def test_a_tombstone_that_overtakes_its_item_still_suppresses_it(bench):
    write(bench, {"Forget": {"target": ID, "conversation": CONVERSATION}})
    write(bench, item())
    assert entries(bench) == []


def test_forgetting_in_another_conversation_changes_nothing(bench):
    write(bench, item())
    write(bench, {"Forget": {"target": ID, "conversation": "01KWM3K3XEP3NP5TN850J17YBR"}})
    assert len(entries(bench)) == 1


def test_a_named_item_takes_every_write_and_comes_back_after_forgetting(bench):
    name = SPACE + "/order"
    for body in (b"one", b"two"):
        write(bench, item(body, name))
    request = {"v": 1, "namespace": SPACE, "key": name.encode()}
    assert bench.ok(agdx.KV_GET, request)["Value"]["value"] == b"two"
    assert bench.ok(agdx.KV_GET, request)["Value"]["version"] == 2
    write(bench, {"Forget": {"target": name}})
    assert bench.ok(agdx.KV_GET, request) == {"Value": None}
    write(bench, item(b"three", name))
    assert bench.ok(agdx.KV_GET, request)["Value"]["value"] == b"three"


def test_any_topic_may_carry_memory_and_rubbish_is_passed_over(bench):
    bench.log.ensure("agents", "customer.memory", 4)
    write(bench, item(), topic="customer.memory")
    for rubbish in (b"", b"\xff", cbor.dumps({"Item": {"id": 1}}), cbor.dumps({"What": {}}), cbor.dumps([1])):
        write(bench, rubbish)
    write(bench, item(b"x", "k" * 513))
    assert len(entries(bench)) == 1
    assert not bench.band.wants("agents", "customer.memory", b"frames without the header")
    assert bench.band.wants("agents", "customer.memory", b"...agdx.mem.ns...")


def test_memory_survives_a_restart(bench):
    write(bench, item())
    write(bench, {"Forget": {"target": "01KWM3K3XEP3NP5TN850J17YBR"}})
    bench.restart()
    assert len(entries(bench)) == 1
    write(bench, item(b"v", "01KWM3K3XEP3NP5TN850J17YBR"))
    assert len(entries(bench)) == 1
