"""The graph: merging upserts, traversals in every direction, lenses, filters, golden bytes."""

import pytest

from desk.stack.wire import agdx, cbor
from desk.stack.wire.records import id_text
from tests.stack.agents import session_id, start
from tests.stack.banding import Bench
from tests.stack.sdist import fixture

GRAPH = "knowledge"


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def key(name):
    return name.encode().ljust(16, b"\0")


def node(name, label="Person", **more):
    return {"id": key(name), "labels": [label], "attrs": [["value", name]], **more}


def edge(one, other, kind="knows", **more):
    fields = {
        "id": key(f"{one}-{other}"),
        "from": key(one),
        "to": key(other),
        "edge_type": kind,
        "weight": 1.0,
    }
    return {**fields, **more}


def upsert(bench, nodes=(), edges=(), **more):
    request = {"v": 1, "graph": GRAPH, **more, "nodes": list(nodes), "edges": list(edges)}
    assert bench.ok(agdx.GRAPH_UPSERT, request) == {}


def query(bench, begin, *hops, **more):
    names = [begin] if isinstance(begin, str) else begin
    wanted = {"Ids": [key(name) for name in names]} if isinstance(names, list) else begin
    return bench.ok(
        agdx.GRAPH_QUERY,
        {"v": 1, "graph": GRAPH, "start": wanted, "traverse": list(hops), "limit": 0, **more},
    )


def neighbors(bench, name, **more):
    request = {"v": 1, "graph": GRAPH, "node": key(name), "depth": 1, "limit": 0, **more}
    return bench.ok(agdx.GRAPH_NEIGHBORS, request)


def names(result):
    return [n["id"].rstrip(b"\0").decode() for n in result.get("nodes", [])]


def string(value):
    return {"kind": "string", "value": value}


def where(field, op, value):
    return {"pred": {"field": field, "op": op, "value": value}}


def source(conversation):
    return {"Message": {"stream": 0, "topic": 1, "partition": 0, "offset": 0, "conversation": conversation}}


@pytest.fixture
def family(bench):
    people = ["ann", "bob", "cyd", "dan"]
    edges = [edge("ann", "bob"), edge("bob", "cyd"), edge("cyd", "dan", "hires"), edge("dan", "ann")]
    upsert(bench, map(node, people), edges)
    return bench


def test_the_golden_upsert_and_query_answer_the_golden_bytes(bench):
    assert bench.ok(agdx.GRAPH_UPSERT, fixture("graph_upsert.bin")) == {}
    assert bench.read(agdx.GRAPH_QUERY, fixture("graph_query.bin")) == fixture("graph_reply.bin")
    around = bench.ok(agdx.GRAPH_NEIGHBORS, fixture("graph_neighbors.bin"))
    assert len(around["nodes"]) == 2 and len(around["edges"]) == 1
    assert bench.ok(agdx.GRAPH_QUERY, fixture("graph_query_conversation.bin")) == {}
    assert bench.ok(agdx.GRAPH_UPSERT, fixture("graph_upsert_session.bin")) == {}


def test_a_graph_nobody_wrote_is_empty(bench):
    assert query(bench, "ann") == {} and neighbors(bench, "ann") == {}


def test_an_upsert_merges_nodes_and_replaces_edges(bench):
    upsert(bench, [node("ann", source=source("c1"))], [edge("ann", "bob", weight=1.0)])
    upsert(
        bench,
        [node("ann", "Boss", attrs=[["age", 40]], source=source("c2"), embedding=[0.5])],
        [edge("ann", "bob", weight=2.0)],
    )
    upsert(bench, [node("bob")])
    (ann,) = query(bench, "ann")["nodes"]
    assert ann["labels"] == ["Person", "Boss"] and ann["attrs"] == [["value", "ann"], ["age", 40]]
    assert ann["source"] == source("c1") and ann["embedding"] == [0.5]
    assert [e["weight"] for e in neighbors(bench, "ann")["edges"]] == [2.0]


def test_neighbors_come_with_the_start_node_and_the_edges_between(family):
    assert names(neighbors(family, "ann")) == ["ann", "bob"]
    assert names(neighbors(family, "ann", dir="in")) == ["ann", "dan"]
    assert names(neighbors(family, "ann", dir="both")) == ["ann", "bob", "dan"]
    assert names(neighbors(family, "ann", depth=2)) == ["ann", "bob", "cyd"]
    assert names(neighbors(family, "cyd", edge_type="knows")) == ["cyd"]
    assert [e["edge_type"] for e in neighbors(family, "cyd")["edges"]] == ["hires"]


def test_a_traversal_follows_its_hops_and_returns_what_was_asked(family):
    hops = [{"edge_type": "knows", "max": 2}, {"edge_type": "hires", "max": 1}]
    assert names(query(family, "ann", *hops)) == ["ann", "bob", "cyd", "dan"]
    edges = query(family, "ann", *hops, return_="edges")
    assert list(edges) == ["edges"] and len(edges["edges"]) == 3
    paths = query(family, "ann", *hops, return_="paths")["paths"]
    assert [[n.rstrip(b"\0").decode() for n in path["nodes"]] for path in paths] == [
        ["ann", "bob", "cyd", "dan"]
    ]
    assert len(paths[0]["edges"]) == 3
    assert list(query(family, "ann", *hops, return_="triplets")) == ["nodes", "edges"]
    assert names(query(family, ["dan", "bob", "nobody"])) == ["dan", "bob"]
    assert names(query(family, "ann", {"max": 8}, limit=2)) == ["ann", "bob"]


def test_circles_end(family):
    assert names(query(family, "ann", {"dir": "both", "max": 8})) == ["ann", "bob", "dan", "cyd"]


def test_filters_decide_what_is_passed(family):
    not_cyd = {"not": where("value", "eq", string("cyd"))}
    assert names(query(family, "ann", {"max": 8}, node_filter=not_cyd)) == ["ann", "bob"]
    only_knows = where("edge_type", "in", {"kind": "list", "value": [string("knows")]})
    assert names(query(family, "ann", {"max": 8}, edge_filter=only_knows)) == ["ann", "bob", "cyd"]
    begin = {"Match": {"any": [where("value", "prefix", string("c")), where("value", "gt", string("cz"))]}}
    assert names(query(family, begin)) == ["cyd", "dan"]
    both = {"all": [where("label", "eq", string("Person")), where("missing", "ne", string("x"))]}
    assert query(family, {"Match": both}) == {}


def test_numbers_compare_as_numbers_also_when_written_as_text(bench):
    upsert(
        bench,
        [
            node("ann", attrs=[["age", 9]]),
            node("bob", attrs=[["age", "40"]]),
            node("cyd", attrs=[["age", True]]),
        ],
    )
    older = where("age", "gt", {"kind": "long", "value": 10})
    assert names(query(bench, {"Match": older})) == ["bob", "cyd"]  # true is text, and text is above digits
    assert names(query(bench, {"Match": where("age", "eq", {"kind": "double", "value": 9.0})})) == ["ann"]


def test_as_of_keeps_edges_from_their_beginning_until_just_before_their_end(bench):
    upsert(bench, [node("ann"), node("bob")], [edge("ann", "bob", valid_from=1000, valid_to=2000)])
    found = {at: len(names(neighbors(bench, "ann", as_of=at))) for at in (999, 1000, 1999, 2000)}
    assert found == {999: 1, 1000: 2, 1999: 2, 2000: 1}
    assert len(names(neighbors(bench, "ann"))) == 2


def test_the_conversation_lens_keeps_what_that_conversation_put_there(bench):
    upsert(
        bench,
        [
            node("ann", source=source("c1")),
            node("bob", source=source("c1")),
            node("cyd", source=source("c2")),
        ],
        [edge("ann", "bob", source=source("c1")), edge("ann", "cyd", source=source("c1"))],
    )
    assert names(neighbors(bench, "ann", conversation="c1")) == ["ann", "bob"]
    assert neighbors(bench, "ann", conversation="c2") == {}


def test_the_nearest_nodes_by_cosine_come_closest_first(bench):
    vectors = {"ann": [1.0, 0.0], "bob": [0.0, 1.0], "cyd": [1.0, 1.0], "dan": [0.0, 0.0], "eve": [1.0]}
    upsert(bench, [node(name, embedding=vector) for name, vector in vectors.items()])
    nearest = {"Nearest": {"embedding": [2.0, 0.1], "k": 2}}
    assert sorted(names(query(bench, nearest))) == ["ann", "cyd"]
    assert names(query(bench, nearest))[0] == "ann"


def test_a_write_in_a_session_links_every_node_and_edge_also_known_ones(bench):
    bench.log.ensure("agents", "agent.sessions", 1)
    register = {"RegisterSessionSource": {"stream": "agents", "topics": "All"}}
    bench.send(agdx.CONTROL_PUBLISH, bench.frame({"v": 1, "timestamp_micros": 0, "command": register}))
    one, two = session_id(1), session_id(2)
    bench.publish("agents", "agent.sessions", [start(one), start(two)])
    for session in (one, two):
        upsert(bench, [node("ann")], [edge("ann", "ann")], session={"stream": "agents", "session": session})
    for session in (one, two):
        request = {"stream": "agents", "id": session}
        links = bench.ok(agdx.SESSION_LINKS, request)["Links"]["links"]
        assert [(link["surface"], link["item"]) for link in links] == [
            ("graph_edge", id_text(key("ann-ann"))),
            ("graph_node", id_text(key("ann"))),
        ]


def test_a_session_of_another_stream_is_refused(bench):
    session = {"stream": "other", "session": session_id(1)}
    request = {"v": 1, "graph": "stream:agents/g", "session": session, "nodes": [node("ann")]}
    assert list(bench.err(agdx.GRAPH_UPSERT, request)) == ["InvalidName"]
    assert bench.store.db.execute("SELECT count(*) FROM graph_node").get == 0


def test_graphs_have_bounds(bench):
    assert list(bench.err(agdx.GRAPH_UPSERT, {"v": 1, "graph": "g" * 129})) == ["InvalidName"]
    many = {"v": 1, "graph": GRAPH, "nodes": [{"id": key(str(i))} for i in range(10_001)]}
    assert bench.err(agdx.GRAPH_UPSERT, many)["TooLarge"]["cap"] == 10_000
    read = {"v": 1, "graph": GRAPH, "start": {"Ids": []}, "limit": 10_001}
    assert bench.err(agdx.GRAPH_QUERY, read)["TooLarge"]["what"] == "limit"
    deep = {**read, "limit": 1, "traverse": [{"max": 9}]}
    assert bench.err(agdx.GRAPH_QUERY, deep)["TooLarge"]["what"] == "traversal depth"


@pytest.mark.parametrize(
    "change",
    [
        {"start": {"What": []}},
        {"start": {"Ids": [b"short"]}},
        {"start": {"Match": {"pred": {"field": "a", "op": "like", "value": string("x")}}}},
        {"start": {"Match": {"pred": {"field": "a", "op": "in", "value": string("x")}}}},
        {"start": {"Match": {"all": []}}},
        {"start": {"Nearest": {"embedding": ["x"], "k": 1}}},
        {"traverse": [{"edge_type": 1, "max": 1}]},
        {"node_filter": {}},
    ],
)
def test_a_malformed_read_is_an_invalid_argument(bench, change):
    request = {"v": 1, "graph": GRAPH, "start": {"Ids": []}, "limit": 1, **change}
    assert bench.plain(agdx.GRAPH_QUERY, request)["code"] == "invalid_argument"


@pytest.mark.parametrize(
    "change",
    [
        {"weight": "x"},
        {"weight": 10**400},
        {"from": 1},
        {"attrs": [["a"]]},
        {"attrs": [[1, 2]]},
        {"attrs": [["a", 10**400]]},
        {"attrs": [["a", [b"bytes"]]]},
    ],
)
def test_a_malformed_upsert_writes_nothing(bench, change):
    request = {"v": 1, "graph": GRAPH, "nodes": [node("ann")], "edges": [{**edge("ann", "ann"), **change}]}
    assert cbor.loads(bench.send(agdx.GRAPH_UPSERT, bench.frame(request)))["code"] == "invalid_argument"
    assert bench.store.db.execute("SELECT count(*) FROM graph_node").get == 0


def test_the_graph_survives_a_restart(family):
    before = query(family, "ann", {"max": 8}, return_="paths")
    family.restart()
    assert query(family, "ann", {"max": 8}, return_="paths") == before
