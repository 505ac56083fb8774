"""The graph: nodes and edges merged by id, and traversals over them.

    upsert     {v, graph, session?, nodes?, edges?}                    {}
    query      {v, graph, start, traverse?, node_filter?, edge_filter?, return_?, limit, as_of?, conversation?}
    neighbors  {v, graph, node, dir?, edge_type?, depth, limit, as_of?, conversation?}
    result     {nodes?, edges?, paths?: [{nodes: ids, edges: ids}]}

start is {Ids: [id]}, {Match: filter} or {Nearest: {embedding, k}}. A node keeps its first source, an edge its
last. `as_of` keeps the edges valid at that instant, `conversation` the elements whose source names it. The
start nodes are part of every result that has nodes. Reading a graph nobody wrote gives nothing.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import apsw

from desk.stack.managed import graph_filter, graph_rows
from desk.stack.managed.kv import stream_fault
from desk.stack.managed.surface import Context, Request, Surface, SurfaceError
from desk.stack.wire import agdx
from desk.stack.wire.kv import SESSION
from desk.stack.wire.records import id_text
from desk.stack.wire.shape import (
    ID16,
    LIST,
    MAP,
    TEXT,
    U32,
    U64,
    Kind,
    Shape,
    ShapeError,
    check,
    listed,
    optional,
    shaped,
)

MAX_FLOAT = sys.float_info.max
MAX_NAME_BYTES, MAX_DEPTH, MAX_ELEMENTS, MAX_LABELS, MAX_ATTRIBUTES = 128, 8, 10_000, 16, 32


def _floats(vector: Sequence[Any]) -> list[float]:
    """The numbers as floats; ShapeError (a ValueError) when one is no finite number."""
    if not all(type(x) in (int, float) and -MAX_FLOAT <= x <= MAX_FLOAT for x in vector):
        raise ShapeError("an embedding is a list of finite numbers")
    return [float(x) for x in vector]


_ELEMENT: Shape = {"id": ID16, "attrs": optional(LIST), "source": optional(MAP), "producer": optional(MAP)}
_NODE: Shape = {**_ELEMENT, "labels": optional(listed(TEXT)), "embedding": optional(LIST)}
_EDGE: Shape = {
    **_ELEMENT,
    "weight": Kind("a finite number", lambda value: _floats([value])[0]),
    "from": ID16,
    "to": ID16,
    "edge_type": TEXT,
    "valid_from": optional(U64),
    "valid_to": optional(U64),
}
_HOP: Shape = {"edge_type": optional(TEXT), "dir": optional(TEXT), "max": U32}
_LENS: Shape = {
    "v": U32,
    "graph": TEXT,
    "limit": U64,
    "as_of": optional(U64),
    "conversation": optional(TEXT),
    "stream": optional(TEXT),
}
_DIRECTIONS = MappingProxyType({"out": (("from", "to"),), "in": (("to", "from"),)})


@dataclass(slots=True)
class Walk:
    """A traversal under way: what it may pass, and what it has found in the order it was found."""

    db: apsw.Connection
    graph: str
    as_of: int | None = None
    conversation: str | None = None
    node_filter: Mapping[str, Any] | None = None
    edge_filter: Mapping[str, Any] | None = None
    nodes: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    edges: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    paths: dict[bytes, tuple[list[bytes], list[bytes]]] = field(default_factory=dict)

    def begin(self, found: Iterator[dict[str, Any]]) -> list[bytes]:
        """Take the start nodes; filters are for what is reached from them."""
        for node in found:
            if self._in_lens(node):
                self.nodes[node["id"]] = node
                self.paths[node["id"]] = ([node["id"]], [])
        return list(self.nodes)

    def hop(self, frontier: list[bytes], hop: Mapping[str, Any]) -> list[bytes]:
        """Follow one hop up to its `max` steps; the nodes it reaches, in order."""
        reached: dict[bytes, None] = {}
        level = frontier
        for _ in range(max(1, hop["max"])):
            following: list[bytes] = []
            for node in level:
                for edge, other in self._around(node, hop):
                    if not self._arrive(node, edge, other) or other in reached:
                        continue
                    reached[other] = None
                    following.append(other)
            if not following:
                break
            level = following
        return list(reached)

    def _around(self, node: bytes, hop: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The passable edges at a node, each with the node at its other end."""
        direction = hop.get("dir", "out")
        for here, there in _DIRECTIONS.get(direction, (*_DIRECTIONS["out"], *_DIRECTIONS["in"])):
            for edge in graph_rows.edges_at(self.db, self.graph, here, node):
                if hop.get("edge_type") in (None, edge["edge_type"]) and self._passes(edge):
                    yield edge, edge[there]

    def _arrive(self, node: bytes, edge: dict[str, Any], other: bytes) -> bool:
        """Note an edge and the node behind it, unless the node is missing or filtered out."""
        known = self.nodes.get(other)
        arrived = known or graph_rows.node(self.db, self.graph, other)
        if arrived is None or not self._keeps(arrived):
            return False
        if len(self.nodes) + len(self.edges) > 2 * MAX_ELEMENTS:
            raise _too_large("traversal", len(self.nodes) + len(self.edges), 2 * MAX_ELEMENTS)
        self.edges[edge["id"]] = edge
        self.nodes[other] = arrived
        if other not in self.paths:
            nodes, edges = self.paths[node]
            self.paths[other] = ([*nodes, other], [*edges, edge["id"]])
        return True

    def _passes(self, edge: Mapping[str, Any]) -> bool:
        at = self.as_of
        if at is not None and not (edge.get("valid_from", 0) <= at < edge.get("valid_to", 1 << 64)):
            return False
        if self.edge_filter is not None and not graph_filter.matches(self.edge_filter, _edge_values(edge)):
            return False
        return self._in_lens(edge)

    def _keeps(self, node: Mapping[str, Any]) -> bool:
        kept = self.node_filter is None or graph_filter.matches(self.node_filter, _node_values(node))
        return kept and self._in_lens(node)

    def _in_lens(self, element: Mapping[str, Any]) -> bool:
        if self.conversation is None:
            return True
        message = (element.get("source") or {}).get("Message")
        return type(message) is dict and message.get("conversation") == self.conversation


class Graph(Surface):
    """Upserts and traversals."""

    name = "graph"
    schema = graph_rows.SCHEMA
    versions = MappingProxyType({"graph": 1})
    position = "graph"
    shapes = MappingProxyType(
        {
            agdx.GRAPH_UPSERT: {
                "v": U32,
                "graph": TEXT,
                "session": optional(shaped("a session reference", SESSION)),
                "nodes": optional(listed(shaped("a node", _NODE))),
                "edges": optional(listed(shaped("an edge", _EDGE))),
            },
            agdx.GRAPH_QUERY: {
                **_LENS,
                "start": MAP,
                "traverse": optional(listed(shaped("a hop", _HOP))),
                "node_filter": optional(MAP),
                "edge_filter": optional(MAP),
                "return_": optional(TEXT),
                "fork": optional(TEXT),
            },
            agdx.GRAPH_NEIGHBORS: {
                **_LENS,
                "node": ID16,
                "dir": optional(TEXT),
                "edge_type": optional(TEXT),
                "depth": U32,
            },
        }
    )

    def upsert(self, request: Request, context: Context) -> Any:
        graph, nodes, edges = request["graph"], request.get("nodes", []), request.get("edges", [])
        _check_name(graph)
        if len(nodes) + len(edges) > MAX_ELEMENTS:
            raise _too_large("elements", len(nodes) + len(edges), MAX_ELEMENTS)
        session = request.get("session")
        if session is not None and (fault := stream_fault(graph, session["stream"])):
            raise SurfaceError({"InvalidName": fault})
        db = self.store.db
        for node in nodes:
            _check_element(node)
            graph_rows.put_node(db, graph, node)
        for edge in edges:
            _check_element(edge)
            graph_rows.put_edge(db, graph, edge)
        sessions = context.surface("sessions")
        if session is not None and sessions is not None:
            for surface, elements in (("graph_node", nodes), ("graph_edge", edges)):
                for element in elements:
                    sessions.link(session, surface, graph, id_text(element["id"]), context)
        return {}

    def query(self, request: Request, context: Context) -> Any:
        hops = request.get("traverse", [])
        _check_read(request)
        if request.get("fork") is not None:
            raise SurfaceError({"Unsupported": "a graph has no forks here"})
        if len(hops) > MAX_DEPTH or any(hop["max"] > MAX_DEPTH for hop in hops):
            raise _too_large("traversal depth", max(len(hops), *(hop["max"] for hop in hops)), MAX_DEPTH)
        filters = {
            name: graph_filter.checked(request[name])
            for name in ("node_filter", "edge_filter")
            if name in request
        }
        walk = self._walk(request, **filters)
        frontier = walk.begin(self._start(request["graph"], request["start"]))
        for hop in hops:
            frontier = walk.hop(frontier, hop)
        return _result(walk, frontier, request.get("return_", "nodes"), request["limit"])

    def neighbors(self, request: Request, context: Context) -> Any:
        _check_read(request)
        if request["depth"] > MAX_DEPTH:
            raise _too_large("traversal depth", request["depth"], MAX_DEPTH)
        walk = self._walk(request)
        frontier = walk.begin(self._start(request["graph"], {"Ids": [request["node"]]}))
        hop = {
            "edge_type": request.get("edge_type"),
            "dir": request.get("dir", "out"),
            "max": request["depth"],
        }
        return _result(walk, walk.hop(frontier, hop), "triplets", request["limit"])

    mutations = MappingProxyType({agdx.GRAPH_UPSERT: upsert})
    barrier_reads = MappingProxyType({agdx.GRAPH_QUERY: query, agdx.GRAPH_NEIGHBORS: neighbors})

    def _walk(self, request: Request, **filters: Mapping[str, Any]) -> Walk:
        return Walk(
            self.store.db, request["graph"], request.get("as_of"), request.get("conversation"), **filters
        )

    def _start(self, graph: str, start: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        db = self.store.db
        tag, body = next(iter(start.items())) if len(start) == 1 else (None, None)
        if tag == "Ids":
            for identity in check({"ids": body}, {"ids": listed(ID16)})["ids"][:MAX_ELEMENTS]:
                if (node := graph_rows.node(db, graph, identity)) is not None:
                    yield node
        elif tag == "Match":
            wanted = graph_filter.checked(body)
            for node in graph_rows.all_nodes(db, graph):
                if graph_filter.matches(wanted, _node_values(node)):
                    yield node
        elif tag == "Nearest":
            wanted = check(body, {"embedding": LIST, "k": U64})
            yield from _nearest(graph_rows.all_nodes(db, graph), _floats(wanted["embedding"]), wanted["k"])
        else:
            raise ShapeError("start is one of Ids, Match, Nearest")


def _nearest(
    nodes: Iterator[dict[str, Any]], wanted: Sequence[float], count: int
) -> Iterator[dict[str, Any]]:
    """The nodes whose embedding is closest by cosine distance, closest first."""
    scored = [
        (1 - sum(a * b for a, b in zip(vector, wanted, strict=True)) / length, node["id"], node)
        for node in nodes
        if len(vector := node.get("embedding", ())) == len(wanted)
        and (length := math.hypot(*vector) * math.hypot(*wanted))
    ]
    for _, _, node in sorted(scored, key=lambda entry: entry[:2])[:count]:
        yield node


def _result(walk: Walk, frontier: Sequence[bytes], returned: str, limit: int) -> dict[str, Any]:
    """What a traversal returns, at most `limit` elements of each kind (0: the cap)."""
    most = limit or MAX_ELEMENTS
    edges = list(walk.edges.values())[:most]
    result: dict[str, Any] = {}
    if returned != "edges":
        result["nodes"] = list(walk.nodes.values())[:most]
    if returned != "nodes":
        result["edges"] = edges
    if returned == "paths":
        result["paths"] = [
            {"nodes": walk.paths[node][0], "edges": walk.paths[node][1]} for node in frontier[:most]
        ]
    return {name: found for name, found in result.items() if found}


def _node_values(node: Mapping[str, Any]) -> dict[str, Any]:
    labels = node.get("labels", ())
    return {**dict(node.get("attrs", ())), "label": labels[0] if labels else None, "labels": ",".join(labels)}


def _edge_values(edge: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict(edge.get("attrs", ())), "edge_type": edge["edge_type"], "weight": edge.get("weight")}


def _check_name(graph: str) -> None:
    if not 1 <= len(graph.encode()) <= MAX_NAME_BYTES or any(c < " " or c == "\x7f" for c in graph):
        raise SurfaceError(
            {"InvalidName": f"a graph name has 1..{MAX_NAME_BYTES} bytes and no control characters"}
        )


def _check_read(request: Request) -> None:
    _check_name(request["graph"])
    if request["limit"] > MAX_ELEMENTS:
        raise _too_large("limit", request["limit"], MAX_ELEMENTS)


def _check_element(element: Mapping[str, Any]) -> None:
    """ShapeError or SurfaceError unless an element's lists have the sizes and kinds the wire allows."""
    attributes = element.get("attrs", ())
    if len(attributes) > MAX_ATTRIBUTES or len(element.get("labels", ())) > MAX_LABELS:
        raise _too_large("attributes or labels", len(attributes), MAX_ATTRIBUTES)
    for pair in attributes:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or not _is_value(pair[1]):
            raise ShapeError("attributes are [name, value] pairs")
    if "embedding" in element:
        _floats(element["embedding"])


def _is_value(value: Any) -> bool:
    """Text, a 64-bit integer, a float, a boolean, null, or a list of such."""
    if type(value) is list:
        return all(map(_is_value, value))
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 64
    return value is None or type(value) in (str, float, bool)


def _too_large(what: str, size: int, cap: int) -> SurfaceError:
    return SurfaceError({"TooLarge": {"what": what, "size": size, "cap": cap}})
