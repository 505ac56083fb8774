"""Forks: branches of views. A fork's rows lie over the trunk's (or its parent's) when a query names the fork.

A severed fork remembers the sequence number it was made at and sees nothing of the trunk that came later; a
continuous one sees the trunk grow. A parent that is an open fork lies between the trunk and the child; a parent
of another name is only remembered.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from desk.stack.folds.promotion import TRUNK, Change, land, put
from desk.stack.managed.surface import Context, Handler, Request, Surface, SurfaceError
from desk.stack.query.kinds import Misfit, fit, kind_of, narrowed
from desk.stack.query.relation import Layer
from desk.stack.query.vectors import unit_vector
from desk.stack.query.views import MAX_COLUMNS, View, Views
from desk.stack.wire import agdx
from desk.stack.wire.fork import CONTINUOUS, KINDS, MAX_OFFSET, REQUESTS, SEVERED, id_fault
from desk.stack.wire.query import BOOLEAN, DOUBLE, LONG, is_vector, valid_name

SCHEMA = """
CREATE TABLE IF NOT EXISTS fork (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, parent TEXT, parent_number INTEGER, kind TEXT,
    user INTEGER, status TEXT, created_us INTEGER, cut INTEGER, tables TEXT, rows INTEGER);
"""
OPEN, PROMOTED, SQUASHED = "open", "promoted", "squashed"
COLUMNS = "number, id, parent, parent_number, kind, user, status, created_us, cut, tables, rows"


@dataclass(frozen=True, slots=True)
class Fork:
    """One fork. A squashed one is listed nowhere and kept only while an open child lies on it (its id is null)."""

    number: int
    id: str | None
    parent: str | None
    parent_number: int | None
    kind: str
    user: int
    status: str
    created_us: int
    cut: int | None
    tables: str
    rows: int

    def wire(self) -> dict[str, Any]:
        info: dict[str, Any] = {"fork_id": self.id}
        if self.parent is not None:
            info["parent"] = self.parent
        info.update(kind=self.kind, user_id=self.user, status=self.status)
        info.update(created_at_micros=self.created_us, row_count=self.rows)
        return info


class Forks(Surface):
    """Create, put, squash, promote, list; and the chain of layers a query reads through."""

    name = "forks"
    schema = SCHEMA
    versions: ClassVar[Mapping[str, int]] = {"fork": 1}
    position = "fork"
    shapes = REQUESTS

    def chain(self, fork_id: str, upto: int) -> tuple[int, list[Layer]]:
        """(the trunk's last change seen, the layers over it) of a query that sees changes up to `upto`."""
        fork = self._find("id = ?", fork_id)
        if fork is None or fork.status != OPEN:
            raise SurfaceError({"ForkNotFound": fork_id})
        layers: list[Layer] = []
        while fork is not None:
            layers.append(Layer(fork.number, upto))
            upto = upto if fork.cut is None else min(upto, fork.cut)
            fork = self._find("number = ?", fork.parent_number)
        return upto, layers[::-1]

    def create(self, request: Request, context: Context) -> dict[str, Any]:
        fork_id, parent = _id(request), request.get("parent")
        kind, tables = request.get("kind", CONTINUOUS), request.get("tables") or []
        if kind not in KINDS or not all(isinstance(name, str) for name in tables):
            raise SurfaceError({"InvalidFork": "a fork is severed or continuous, and its tables are names"})
        held = self._find("id = ?", fork_id)
        if held is not None and held.status == OPEN:
            raise SurfaceError({"Conflict": f"fork {fork_id} is already open"})
        if held is not None:
            self._delist(held)
        below = self._find("id = ? AND status = 'open'", parent) if parent is not None else None
        cut = context.surface("registry").views.seq if kind == SEVERED else None
        number = self.store.db.execute(
            "INSERT INTO fork (id, parent, parent_number, kind, user, status, created_us, cut, tables, rows) "
            "VALUES (?, ?, ?, ?, ?, 'open', ?, ?, ?, 0) RETURNING number",
            (
                fork_id, parent, below.number if below else None, kind, context.caller.user_id, context.now_us,
                cut, json.dumps(tables),
            ),
        ).get  # fmt: skip
        fork = self._find("number = ?", number)
        assert fork is not None
        return {"Created": fork.wire()}

    def squash(self, request: Request, context: Context) -> dict[str, Any]:
        fork = self._find("id = ?", _id(request))
        if fork is not None:
            self._delist(fork)
            self._clear(context.surface("registry").views)
        return {"Deleted": fork is not None}

    def promote(self, request: Request, context: Context) -> dict[str, Any]:
        fork = self._open(request)
        views: Views = context.surface("registry").views
        below = self._find("number = ? AND status = 'open'", fork.parent_number)
        rows = 0
        for view in views:
            if not self._rows_in(view, fork):
                continue
            if below is None:
                view = _typed(views, views.ensure(view.name, trunk=True))
            rows += land(views, view, fork.number, below.number if below else TRUNK)
        if below is not None:
            total = sum(self._rows_in(view, below) for view in views)
            self.store.db.execute("UPDATE fork SET rows = ? WHERE number = ?", (total, below.number))
        self.store.db.execute("UPDATE fork SET status = 'promoted' WHERE number = ?", (fork.number,))
        self._clear(views)
        return {"Promoted": {"rows": rows}}

    def list(self, _request: Request, _context: Context) -> dict[str, Any]:
        rows = self.store.db.execute(f"SELECT {COLUMNS} FROM fork WHERE id IS NOT NULL ORDER BY number")
        return {"List": [Fork(*row).wire() for row in rows]}

    def put(self, request: Request, context: Context) -> str:
        fork, table = self._open(request), request["table"]
        fields, tombstone = request.get("fields") or {}, request.get("tombstone", False)
        tables = json.loads(fork.tables)
        if tables and table not in tables:
            raise SurfaceError({"InvalidFork": f"table {table} is not part of this fork"})
        if not valid_name(table) or request["offset"] > MAX_OFFSET:
            raise SurfaceError({"InvalidFork": "a row needs a table's name and an offset below 2^63"})
        vector = _embedding(request.get("embedding"))
        views: Views = context.surface("registry").views
        if not tombstone:
            _check_fields(views.get(table), fields)
        views.ensure(table, trunk=False)
        if not tombstone:
            for name, text in fields.items():
                views.declare(table, name, fork_kind=kind_of(narrowed(text)))
        view = views.get(table)
        assert view is not None
        cells: list[str | None] = [None] * view.width
        for name, text in {} if tombstone else fields.items():
            cells[view.columns[name].slot] = text
        change = Change(
            request["partition_id"], request["offset"], context.now_us, tombstone, False, request.get("payload"),
            vector, tuple(cells),
        )  # fmt: skip
        if put(views, view, fork.number, change):
            self.store.db.execute("UPDATE fork SET rows = rows + 1 WHERE number = ?", (fork.number,))
        return "Written"

    mutations: ClassVar[Mapping[int, Handler]] = {
        agdx.FORK_CREATE: create,
        agdx.FORK_DELETE: squash,
        agdx.FORK_PROMOTE: promote,
        agdx.FORK_PUT: put,
    }
    barrier_reads: ClassVar[Mapping[int, Handler]] = {agdx.FORK_LIST: list}

    def _find(self, condition: str, value: Any) -> Fork | None:
        row = self.store.db.execute(f"SELECT {COLUMNS} FROM fork WHERE {condition}", (value,)).fetchone()
        return Fork(*row) if row else None

    def _open(self, request: Request) -> Fork:
        fork = self._find("id = ?", _id(request))
        if fork is None:
            raise SurfaceError({"NotFound": request["fork_id"]})
        if fork.status != OPEN:
            raise SurfaceError({"Conflict": f"fork {fork.id} is {fork.status}"})
        return fork

    def _rows_in(self, view: View, fork: Fork) -> int:
        sql = f"SELECT count(*) FROM {view.forked} WHERE fork = ? AND gone IS NULL"
        return self.store.db.execute(sql, (fork.number,)).get

    def _delist(self, fork: Fork) -> None:
        self.store.db.execute(
            "UPDATE fork SET id = NULL, status = 'squashed' WHERE number = ?", (fork.number,)
        )

    def _clear(self, views: Views) -> None:
        """Delete the rows of forks that are closed and that no open fork lies on."""
        db = self.store.db
        needed = (
            "WITH RECURSIVE needed (number) AS (SELECT number FROM fork WHERE status = 'open' UNION "
            "SELECT parent_number FROM fork JOIN needed USING (number) WHERE parent_number IS NOT NULL) "
        )
        over = [n for (n,) in db.execute(f"{needed}SELECT number FROM fork WHERE number NOT IN needed")]
        for view in views:
            for number in over:
                db.execute(f"DELETE FROM {view.forked} WHERE fork = ?", (number,))
            if not view.trunk and not db.execute(f"SELECT 1 FROM {view.forked} LIMIT 1").get:
                views.drop(view.name)
        for number in over:
            db.execute("DELETE FROM fork WHERE number = ? AND id IS NULL", (number,))


def _id(request: Request) -> str:
    """The fork id of a request."""
    fork_id = request["fork_id"]
    if fault := id_fault(fork_id):
        raise SurfaceError({"InvalidFork": fault})
    return fork_id


def _check_fields(view: View | None, fields: Mapping[Any, Any]) -> None:
    """Text that does not read as its column's kind is refused here: later it could only become null."""
    known = view.columns if view else {}
    if len(known) + sum(name not in known for name in fields) > MAX_COLUMNS:
        raise SurfaceError({"InvalidFork": f"a view has at most {MAX_COLUMNS} fields"})
    for name, text in fields.items():
        if not valid_name(name) or not isinstance(text, str):
            raise SurfaceError({"InvalidFork": "fields are texts by valid names"})
        column = known.get(name)
        if column is not None and column.kind in (BOOLEAN, LONG, DOUBLE):
            try:
                fit(text, column.kind, read_text=True)
            except Misfit as why:
                text = f"field {name} holds {column.kind} values, and this is a {why}"
                raise SurfaceError({"InvalidFork": text}) from None


def _embedding(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        numbers = json.loads(text)
    except (ValueError, RecursionError):
        numbers = None
    if not is_vector(numbers):
        raise SurfaceError({"InvalidFork": "an embedding is a JSON list of finite numbers"})
    return unit_vector(numbers)


def _typed(views: Views, view: View) -> View:
    """Before rows land on the trunk: columns only forks had so far get the kind their texts have in common."""
    for column in view.columns.values():
        if column.fork_only:
            views.typed(view.name, column.name, column.fork_kind or "")
    return views.get(view.name) or view
