"""The graph fold: records of topics bound to a graph projection become nodes and edges.

A projection's entity schema says where in a record the values of nodes are, and which of them edges join:

    {nodes: [{label, value_pointer, embedding_pointer?}],
     edges: [{edge_type, from_pointer, to_pointer, valid_from_pointer?, valid_to_pointer?}]}

Ids are content hashes, the same the SDK makes, so what a record says meets what somebody upserted. The end of
an edge is the node whose rule has the same pointer. The binding's index names the graph. Elements stay when a
binding or projection goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desk.stack.folds.decoding import Schemas, decoded
from desk.stack.folds.extraction import path_of, resolved
from desk.stack.folds.memory import source_of
from desk.stack.folds.projector import REFERENCE
from desk.stack.managed import graph_rows
from desk.stack.managed.schemas import Undecodable
from desk.stack.managed.surface import Context, Surface
from desk.stack.query.kinds import is_scalar, text_of
from desk.stack.wire import cbor
from desk.stack.wire.iggy import Record
from desk.stack.wire.records import CONVERSATION, text

SCHEMA = """
CREATE TABLE IF NOT EXISTS graph_source (
    stream TEXT NOT NULL, topic TEXT NOT NULL, graph TEXT NOT NULL, plan BLOB NOT NULL,
    PRIMARY KEY (stream, topic, graph)
) WITHOUT ROWID;
"""
GRAPH = 1  # the kind of a graph projection
MAX_TIME = 1 << 63
MAX_NUMBER = 1e300
_FNV_PRIME, _FNV_OFFSET, _MASK = 0x100000001B3, 0xCBF29CE484222325, (1 << 64) - 1

Place = tuple[str, str, str]  # stream, topic, graph


@dataclass(frozen=True, slots=True)
class Plan:
    """What a binding does for one graph: the projections it allows, by id, and the one it falls back to."""

    default: str | None
    projections: Mapping[str, Mapping[str, Any]]

    def wire(self) -> dict[str, Any]:
        return {"default": self.default, "projections": dict(self.projections)}


class Entities(Surface):
    """Folds bound topics into graphs."""

    name = "entities"
    schema = SCHEMA

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._plans: dict[Place, Plan] = {}

    def reload(self) -> None:
        rows = self.store.db.execute("SELECT stream, topic, graph, plan FROM graph_source")
        self._plans = {
            (stream, topic, graph): Plan(**cbor.loads(plan)) for stream, topic, graph, plan in rows
        }

    def configured(self, context: Context) -> None:
        """Take over what is bound now; a new or changed plan reads its topic from the earliest record on."""
        wanted = _plans(context.surface("registry").definitions)
        for place in self._plans.keys() - wanted.keys():
            self.store.db.execute(
                "DELETE FROM graph_source WHERE stream = ? AND topic = ? AND graph = ?", place
            )
        for place, plan in wanted.items():
            if plan != self._plans.get(place):
                self.store.db.execute(
                    "INSERT OR REPLACE INTO graph_source VALUES (?, ?, ?, ?)",
                    (*place, cbor.dumps(plan.wire())),
                )
                self._rebuild(place, plan, context)
        self._plans = wanted

    def wants(self, stream: str, topic: str) -> bool:
        return any(place[:2] == (stream, topic) for place in self._plans)

    def appended(
        self, stream: str, topic: str, partition: int, records: Sequence[Record], context: Context
    ) -> None:
        for place, plan in self._plans.items():
            if place[:2] == (stream, topic):
                for record in records:
                    self._fold(place, plan, partition, record, context)

    def _rebuild(self, place: Place, plan: Plan, context: Context) -> None:
        stream, topic, _ = place
        info = self.log.topic_info(stream, topic)
        for partition in range(info.partitions if info else 0):
            for record in self.log.read(stream, topic, partition, self.log.first(stream, topic, partition)):
                self._fold(place, plan, partition, record, context)

    def _fold(self, place: Place, plan: Plan, partition: int, record: Record, context: Context) -> None:
        stream, topic, graph = place
        projection = _projection(plan, stream, record)
        if projection is None:
            return
        definitions = context.surface("registry").definitions
        schemas: Schemas = lambda number: definitions.writer(stream, number)  # noqa: E731
        try:
            document = decoded(record, projection["content_type"], schemas)
        except Undecodable:
            return
        source = source_of(stream, topic, partition, record, context)
        if (conversation := text(record, CONVERSATION)) is not None:
            source["Message"]["conversation"] = conversation
        nodes, edges = extracted(projection["entity_schema"], document, source)
        for node in nodes:
            graph_rows.put_node(self.store.db, graph, node)
        for edge in edges:
            graph_rows.put_edge(self.store.db, graph, edge)


def extracted(
    schema: Mapping[str, Any], document: Any, source: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes and edges an entity schema finds in a document."""
    nodes: list[dict[str, Any]] = []
    ends: dict[str, bytes] = {}
    for rule in schema.get("nodes") or ():
        value = resolved(document, path_of(rule["value_pointer"]))
        if not is_scalar(value) or value == "":
            continue
        node = {"id": node_id(rule["label"], text_of(value)), "labels": [rule["label"]]}
        node["attrs"] = [["value", text_of(value)]]
        if vector := _vector(document, rule.get("embedding_pointer")):
            node["embedding"] = vector
        node["source"] = source
        nodes.append(node)
        ends.setdefault(rule["value_pointer"], node["id"])
    edges = [
        edge
        for rule in schema.get("edges") or ()
        if (edge := _edge(rule, document, ends)) is not None and edge.setdefault("source", source)
    ]
    return nodes, edges


def _vector(document: Any, pointer: str | None) -> list[float]:
    """The embedding a pointer leads to; empty when there is none."""
    found = resolved(document, path_of(pointer)) if pointer else None
    if not isinstance(found, list) or not all(type(x) in (int, float) and abs(x) < MAX_NUMBER for x in found):
        return []
    return [float(x) for x in found]


def _edge(rule: Mapping[str, Any], document: Any, ends: Mapping[str, bytes]) -> dict[str, Any] | None:
    begin, end = ends.get(rule["from_pointer"]), ends.get(rule["to_pointer"])
    if begin is None or end is None:
        return None
    kind = rule["edge_type"]
    edge: dict[str, Any] = {"id": edge_id(begin, kind, end), "from": begin, "to": end}
    edge.update(edge_type=kind, weight=1.0)
    for name in ("valid_from", "valid_to"):
        pointer = rule.get(f"{name}_pointer")
        at = resolved(document, path_of(pointer)) if pointer else None
        if type(at) is int and 0 <= at < MAX_TIME:
            edge[name] = at
    return edge


def node_id(label: str, value: str) -> bytes:
    """The content id of a node: equal label and value, equal node."""
    return _content_id(label.encode() + b"\0" + value.encode())


def edge_id(begin: bytes, edge_type: str, end: bytes) -> bytes:
    """The content id of an edge."""
    return _content_id(begin + b"\0" + edge_type.encode() + b"\0" + end)


def _content_id(data: bytes) -> bytes:
    """Two salted FNV-1a passes, 8 bytes each."""
    return b"".join(_fnv1a(salt, data).to_bytes(8, "big") for salt in (0x4D, 0xC7))


def _fnv1a(salt: int, data: bytes) -> int:
    value = (_FNV_OFFSET ^ salt) * _FNV_PRIME & _MASK
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & _MASK
    return value


def _plans(definitions: Any) -> dict[Place, Plan]:
    """Every binding that allows a graph projection with a usable schema."""
    usable = {
        name: {"content_type": body["content_type"], "entity_schema": body["entity_schema"]}
        for name, body in definitions.projections.items()
        if body.get("kind") == GRAPH and _is_schema(body.get("entity_schema"))
    }
    plans = {}
    for place, body in definitions.bindings.items():
        default = body.get("default_projection")
        names = [*(body.get("allowed_projections") or ()), *([default] if default else ())]
        allowed = {name: usable[name] for name in names if name in usable}
        if allowed:
            plans[place] = Plan(default if default in allowed else None, allowed)
    return plans


def _is_schema(schema: Any) -> bool:
    """Are all the rules there and their fields text? One that is not is recorded and never run."""
    if type(schema) is not dict:
        return False
    for kind, needed, more in (
        ("nodes", ("label", "value_pointer"), ("embedding_pointer",)),
        ("edges", ("edge_type", "from_pointer", "to_pointer"), ("valid_from_pointer", "valid_to_pointer")),
    ):
        rules = schema.get(kind) or ()
        if type(rules) not in (list, tuple) or not all(type(rule) is dict for rule in rules):
            return False
        for rule in rules:
            if not all(type(rule.get(name)) is str for name in needed):
                return False
            if not all(type(rule.get(name, "")) is str for name in more):
                return False
    return True


def _projection(plan: Plan, stream: str, record: Record) -> Mapping[str, Any] | None:
    """The projection a record asks for, as typed or scoped to its stream; without asking, the default."""
    if REFERENCE not in record.headers:
        return plan.projections.get(plan.default) if plan.default else None
    asked = text(record, REFERENCE)
    return plan.projections.get(str(asked)) or plan.projections.get(f"stream:{stream}/{asked}")
