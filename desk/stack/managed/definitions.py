"""What is registered: projections, bindings, writer schemas. Stored as the wire has them, kept in memory too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from desk.stack.folds.extraction import Extraction, extraction
from desk.stack.folds.projector import Binding
from desk.stack.folds.retention import retention
from desk.stack.managed.schemas import Compiled, SchemaError, compiled
from desk.stack.wire import cbor
from desk.stack.wire.registry import Body

SCHEMA = """
CREATE TABLE IF NOT EXISTS projection (id TEXT UNIQUE, body BLOB);
CREATE TABLE IF NOT EXISTS binding (stream TEXT, topic TEXT, name TEXT, body BLOB, UNIQUE (stream, topic, name));
CREATE TABLE IF NOT EXISTS writer_schema (
    stream TEXT, id INTEGER, body BLOB, dropped INTEGER, PRIMARY KEY (stream, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS schema_awaited (
    stream TEXT, id INTEGER, PRIMARY KEY (stream, id)) WITHOUT ROWID;
"""
EVERYWHERE = ""  # the stream of the deployment-wide schema registry

Place = tuple[str, str, str]  # stream, topic, index


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """A registered schema; a dropped one keeps its id and still decodes."""

    body: Body
    dropped: bool

    def wire(self) -> Body:
        return {"schema": self.body, "dropped": self.dropped}


class Definitions:
    """The three registries. Every change goes through to the tables, inside the caller's transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.projections: dict[str, Body] = {}
        self.bindings: dict[Place, Body] = {}
        self.schemas: dict[tuple[str, int], WriterSchema] = {}
        self._compiled: dict[tuple[str, int], Compiled | None] = {}

    def reload(self) -> None:
        db = self._db
        self.projections = {
            name: cbor.loads(body)
            for name, body in db.execute("SELECT id, body FROM projection ORDER BY rowid")
        }
        rows = db.execute("SELECT stream, topic, name, body FROM binding ORDER BY rowid")
        self.bindings = {(stream, topic, name): cbor.loads(body) for stream, topic, name, body in rows}
        self.schemas = {
            (stream, number): WriterSchema(cbor.loads(body), bool(dropped))
            for stream, number, body, dropped in db.execute(
                "SELECT stream, id, body, dropped FROM writer_schema"
            )
        }
        self._compiled = {}

    def put_projection(self, body: Body) -> None:
        sql = "INSERT INTO projection VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body"
        self._db.execute(sql, (body["id"], cbor.dumps(body)))
        self.projections[body["id"]] = body

    def drop_projection(self, name: str) -> None:
        self._db.execute("DELETE FROM projection WHERE id = ?", (name,))
        self.projections.pop(name, None)

    def put_binding(self, body: Body) -> None:
        sql = "INSERT INTO binding VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body"
        place = place_of(body)
        self._db.execute(sql, (*place, cbor.dumps(body)))
        self.bindings[place] = body

    def drop_binding(self, place: Place) -> None:
        self._db.execute("DELETE FROM binding WHERE stream = ? AND topic = ? AND name = ?", place)
        self.bindings.pop(place, None)

    def put_schema(self, stream: str, body: Body, *, dropped: bool = False) -> None:
        number = body["id"]
        sql = "INSERT OR REPLACE INTO writer_schema VALUES (?, ?, ?, ?)"
        self._db.execute(sql, (stream, number, cbor.dumps(body), dropped))
        self.schemas[stream, number] = WriterSchema(body, dropped)
        self._compiled = {}

    def next_schema(self, stream: str) -> int:
        return 1 + max((number for owner, number in self.schemas if owner == stream), default=0)

    def writer(self, stream: str, number: int) -> Compiled | None:
        """The compiled schema a record of `stream` names: the stream's own, else the deployment's.

        One that is not there yet is remembered: registering it projects its records again.
        """
        if not 0 <= number < 1 << 32:
            return None  # ids are u32: this one never comes
        key = stream, number
        if key not in self._compiled:
            found = self.schemas.get(key) or self.schemas.get((EVERYWHERE, number))
            try:
                self._compiled[key] = None if found is None else compiled(found.body["source"])
            except SchemaError:
                self._compiled[key] = None
        schema = self._compiled[key]
        if schema is None:
            self._db.execute("INSERT OR IGNORE INTO schema_awaited VALUES (?, ?)", key)
        return schema

    def awaiting(self, stream: str, number: int) -> set[str]:
        """The streams with records that named this schema before it was there; forgotten hereby.

        Also a stream whose own schema takes the place of the deployment's of the same id.
        """
        owners = self._db.execute("SELECT stream FROM schema_awaited WHERE id = ?", (number,))
        found = {owner for (owner,) in owners if stream in (EVERYWHERE, owner)}
        if stream != EVERYWHERE and (EVERYWHERE, number) in self.schemas:
            found.add(stream)
        for owner in found:
            self._db.execute("DELETE FROM schema_awaited WHERE stream = ? AND id = ?", (owner, number))
        return found

    def bound(self) -> list[Binding]:
        """Every binding, ready for the projector."""
        return [binding(body) for body in self.bindings.values()]

    def extractions(self) -> dict[str, Extraction]:
        """Every row projection, ready for the projector."""
        return {name: extraction(body) for name, body in self.projections.items() if not body.get("kind")}


def place_of(body: Mapping[str, Any]) -> Place:
    return body["source"]["stream"], body["source"]["topic"], body["index"]


def binding(body: Mapping[str, Any]) -> Binding:
    return Binding(
        *place_of(body),
        tuple(body.get("allowed_projections") or ()),
        body.get("default_projection"),
        bool(body.get("notify")),
        retention(body.get("retention")),
    )
