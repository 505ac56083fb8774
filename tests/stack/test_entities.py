"""Graph projections: records of a bound topic become nodes and edges, early or late, with the SDK's own ids."""

import json

import pytest

from desk.stack.folds import entities
from desk.stack.wire import agdx, cbor
from tests.stack.banding import Bench
from tests.stack.sdist import fixture

SCHEMA = {
    "nodes": [
        {"label": "Person", "value_pointer": "/who", "embedding_pointer": "/vector"},
        {"label": "Company", "value_pointer": "/firm/name"},
    ],
    "edges": [
        {
            "edge_type": "works_at",
            "from_pointer": "/who",
            "to_pointer": "/firm/name",
            "valid_from_pointer": "/since",
            "valid_to_pointer": "/until",
        }
    ],
}
PROJECTION = {
    "id": "people.v1",
    "name": "people",
    "version": 1,
    "kind": 1,
    "content_type": "json",
    "extraction": {"fields": [], "inline_payload": False},
    "entity_schema": SCHEMA,
    "inline_payload_default": False,
}
BINDING = {
    "source": {"stream": "hr", "topic": "facts"},
    "allowed_projections": ["people.v1"],
    "default_projection": "people.v1",
    "index": "knowledge",
}
ALICE = {"who": "Alice", "firm": {"name": "Acme"}, "since": 1000, "until": 2000}


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    bench.log.ensure("hr", "facts", 2)
    yield bench
    bench.close()


def control(bench, tag, body):
    request = {"v": 1, "timestamp_micros": 0, "command": {tag: body}}
    reply = cbor.loads(bench.send(agdx.CONTROL_PUBLISH, bench.frame(request)))
    assert cbor.loads(reply["reply"])["code"] == "ok"


def publish(bench, *documents, headers=None):
    payloads = [d if isinstance(d, bytes) else json.dumps(d).encode() for d in documents]
    bench.publish("hr", "facts", [(payload, headers or {}) for payload in payloads], partition=1)


def graph(bench, name="knowledge"):
    everything = {"Match": {"not": {"pred": {"field": "label", "op": "eq", "value": {"kind": "null"}}}}}
    hop = {"dir": "both", "max": 8}
    request = {
        "v": 1,
        "graph": name,
        "start": everything,
        "traverse": [hop],
        "return_": "triplets",
        "limit": 0,
    }
    found = bench.ok(agdx.GRAPH_QUERY, request)
    values = sorted(node["attrs"][0][1] for node in found.get("nodes", []))
    return values, found.get("edges", [])


def test_ids_are_the_ones_the_sdk_makes():
    node, edge = cbor.loads(fixture("graph_node.bin")), cbor.loads(fixture("graph_edge.bin"))
    assert entities.node_id("Doc", "spec") == node["id"]
    alice, acme = entities.node_id("Person", "Alice"), entities.node_id("Company", "Acme")
    assert (alice, acme) == (edge["from"], edge["to"])
    assert entities.edge_id(alice, "works_at", acme) == edge["id"]


def test_records_become_nodes_and_edges_as_they_are_published(bench):
    control(bench, "RegisterGraph", PROJECTION)
    control(bench, "ApplyBinding", BINDING)
    publish(
        bench, {**ALICE, "vector": [0.5, 1]}, {"who": "Bob"}, {"firm": {"name": 7}}, b"no json", {"who": {}}
    )
    values, edges = graph(bench)
    assert values == ["7", "Acme", "Alice", "Bob"]
    golden = cbor.loads(fixture("graph_edge.bin"))
    (edge,) = edges
    source = edge.pop("source")["Message"]
    assert cbor.dumps(edge) == cbor.dumps(golden)
    info = bench.log.topic_info("hr", "facts")
    assert source == {
        "stream": info.stream_id,
        "topic": info.id,
        "partition": 1,
        "offset": 0,
        "generation": info.created_us,
    }


def test_a_late_binding_and_a_changed_schema_read_from_the_earliest_record(bench):
    publish(bench, ALICE)
    control(bench, "ApplyBinding", BINDING)
    assert graph(bench) == ([], [])
    control(bench, "RegisterGraph", PROJECTION)
    assert graph(bench)[0] == ["Acme", "Alice"]
    schema = {"nodes": [{"label": "Year", "value_pointer": "/since"}]}
    control(bench, "RegisterGraph", {**PROJECTION, "entity_schema": schema})
    assert graph(bench)[0] == ["1000", "Acme", "Alice"]


def test_a_dropped_projection_leaves_its_elements_and_reads_no_more(bench):
    control(bench, "RegisterGraph", PROJECTION)
    control(bench, "ApplyBinding", BINDING)
    publish(bench, ALICE)
    control(bench, "DropGraph", "people.v1")
    publish(bench, {"who": "Bob"})
    assert graph(bench)[0] == ["Acme", "Alice"]


def test_a_record_may_name_its_projection_as_typed_or_scoped(bench):
    control(bench, "RegisterGraph", {**PROJECTION, "id": "stream:hr/people.v1"})
    scoped = {**BINDING, "allowed_projections": ["stream:hr/people.v1"], "default_projection": None}
    control(bench, "ApplyBinding", scoped)
    publish(bench, {"who": "Nobody"})
    publish(bench, {"who": "Alice"}, headers={"agdx.ref": ("string", b"people.v1")})
    publish(bench, {"who": "Bob"}, headers={"agdx.ref": ("string", b"stream:hr/people.v1")})
    publish(bench, {"who": "Eve"}, headers={"agdx.ref": ("string", b"other.v1")})
    assert graph(bench)[0] == ["Alice", "Bob"]


def test_the_conversation_of_a_record_is_the_lens_on_what_it_said(bench):
    control(bench, "RegisterGraph", PROJECTION)
    control(bench, "ApplyBinding", BINDING)
    publish(bench, ALICE, headers={"gen_ai.conversation.id": ("string", b"c-1")})
    publish(bench, {"who": "Bob"})
    request = {
        "v": 1,
        "graph": "knowledge",
        "start": {"Ids": [entities.node_id("Person", "Alice")]},
        "limit": 0,
    }
    assert len(bench.ok(agdx.GRAPH_QUERY, {**request, "conversation": "c-1"})["nodes"]) == 1
    assert bench.ok(agdx.GRAPH_QUERY, {**request, "conversation": "c-2"}) == {}


def test_plans_survive_a_restart_and_nothing_is_read_twice(bench):
    control(bench, "RegisterGraph", PROJECTION)
    control(bench, "ApplyBinding", BINDING)
    publish(bench, ALICE)
    bench.restart()
    publish(bench, {"who": "Bob"})
    before = graph(bench)
    assert before[0] == ["Acme", "Alice", "Bob"]
    control(bench, "ApplyBinding", BINDING)
    assert graph(bench) == before


@pytest.mark.parametrize(
    "schema",
    [
        {"nodes": "x"},
        {"nodes": [1]},
        {"nodes": [{"label": "L"}]},
        {"edges": [{"edge_type": 1}]},
        [],
        {"nodes": None},
    ],
)
def test_a_schema_that_is_none_is_recorded_and_never_run(bench, schema):
    control(bench, "RegisterGraph", {**PROJECTION, "entity_schema": schema})
    control(bench, "ApplyBinding", BINDING)
    publish(bench, ALICE)
    assert graph(bench) == ([], [])
    listed = bench.plain(agdx.GET_PROJECTION, {"v": 1, "id": "people.v1"})["Ok"]["Projection"]
    assert listed["projection"]["entity_schema"] == schema
