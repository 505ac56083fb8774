"""The graph's tables: nodes and edges by id, merged as they are written."""

from collections.abc import Iterator, Mapping
from typing import Any

import apsw

from desk.stack.wire import cbor

SCHEMA = """
CREATE TABLE IF NOT EXISTS graph_node (
    graph TEXT NOT NULL, id BLOB NOT NULL, item BLOB NOT NULL, PRIMARY KEY (graph, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS graph_edge (
    graph TEXT NOT NULL, id BLOB NOT NULL, "from" BLOB NOT NULL, "to" BLOB NOT NULL, item BLOB NOT NULL,
    PRIMARY KEY (graph, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS graph_edge_from ON graph_edge (graph, "from");
CREATE INDEX IF NOT EXISTS graph_edge_to ON graph_edge (graph, "to");
"""


def put_node(db: apsw.Connection, graph: str, element: Mapping[str, Any]) -> None:
    """Write a node over the one of the same id."""
    merged = _merged(node(db, graph, element["id"]), element)
    db.execute(
        "INSERT OR REPLACE INTO graph_node VALUES (?, ?, ?)", (graph, element["id"], cbor.dumps(merged))
    )


def put_edge(db: apsw.Connection, graph: str, edge: Mapping[str, Any]) -> None:
    """Write an edge instead of the one of the same id."""
    db.execute(
        "INSERT OR REPLACE INTO graph_edge VALUES (?, ?, ?, ?, ?)",
        (graph, edge["id"], edge["from"], edge["to"], cbor.dumps(edge)),
    )


def edges_at(db: apsw.Connection, graph: str, end: str, identity: bytes) -> list[dict[str, Any]]:
    """The edges whose `from` or `to` (the name of the `end`) is a node."""
    found = db.execute(f'SELECT item FROM graph_edge WHERE graph = ? AND "{end}" = ?', (graph, identity))
    return [cbor.loads(item) for (item,) in found]


def node(db: apsw.Connection, graph: str, identity: bytes) -> dict[str, Any] | None:
    item = db.execute("SELECT item FROM graph_node WHERE graph = ? AND id = ?", (graph, identity)).get
    return cbor.loads(item) if item is not None else None


def all_nodes(db: apsw.Connection, graph: str) -> Iterator[dict[str, Any]]:
    for (item,) in db.execute("SELECT item FROM graph_node WHERE graph = ?", (graph,)):
        yield cbor.loads(item)


def _merged(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node over the one that was there: labels and attributes add up, the first source stays."""
    if old is None:
        return new
    labels = list(dict.fromkeys([*old.get("labels", ()), *new.get("labels", ())]))
    attributes = {**dict(old.get("attrs", ())), **dict(new.get("attrs", ()))}
    merged = {
        "id": old["id"],
        "labels": labels,
        "attrs": [[name, value] for name, value in attributes.items()],
        "embedding": new.get("embedding", old.get("embedding")),
        "source": old.get("source", new.get("source")),
        "producer": old.get("producer", new.get("producer")),
    }
    return {name: value for name, value in merged.items() if value not in (None, [])}
