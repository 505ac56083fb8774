"""Views as tables: their columns, their sequence numbers, which rows are live, and who reads them.

A view (the protocol says index) is three tables, named by number; names that users chose stay in `view` and
`view_column` and never reach SQL text:

    view_N   seq, source, partition, "offset", at, gone, expires, c0, c1, ...     a row
    body_N   seq, payload, vector                                                its payload, where kept
    fork_N   seq, fork, partition, "offset", at, gone, tombstone, based, alone, payload, vector, c0, ... as text

Every change takes the next number of one sequence: `seq` is the change that made a row, `gone` the one that
removed it (null while live). A reader pinned to number n sees exactly the rows with seq <= n < gone, so pages
agree with each other without a transaction held open, and a severed fork is nothing but such a number.
Removed rows stay until nobody can be pinned before their removal (`forget_removed`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import apsw

from desk.stack.query.kinds import AFFINITY, widest

SCHEMA = """
CREATE TABLE IF NOT EXISTS view_clock (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER, forgotten INTEGER);
INSERT OR IGNORE INTO view_clock VALUES (1, 0, 0);
CREATE TABLE IF NOT EXISTS view (view INTEGER PRIMARY KEY, name TEXT UNIQUE, width INTEGER, trunk INTEGER);
CREATE TABLE IF NOT EXISTS view_column (
    view INTEGER, place INTEGER, name TEXT, slot INTEGER, kind TEXT, fork_kind TEXT, hint INTEGER,
    misfits INTEGER DEFAULT 0, misfit TEXT, indexed INTEGER DEFAULT 0,
    PRIMARY KEY (view, name)) WITHOUT ROWID;
"""
MAX_COLUMNS = 1000  # SQLite's own limit is 2,000; a producer of random index headers meets this one
ROW = ("seq", "source", "partition", "offset", "at", "expires")


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a view. `slot` is the n of its SQL column c<n>, None until a value gave it a kind."""

    place: int  # in the order of the projection's fields
    name: str
    slot: int | None
    kind: str | None  # what records and hints gave it
    fork_kind: str | None  # what rows put into forks gave it
    hint: bool  # the projection named its kind
    misfits: int
    misfit: str | None  # the last one, in words
    indexed: bool

    @property
    def fork_only(self) -> bool:
        return self.kind is None and self.fork_kind is not None


@dataclass(frozen=True, slots=True)
class View:
    """A view as one instant sees it; `columns` by name, in the order of the projections' fields."""

    number: int
    name: str
    width: int  # SQL columns ever made
    trunk: bool  # queryable outside a fork
    columns: dict[str, Column]

    @property
    def table(self) -> str:
        return f"view_{self.number}"

    @property
    def bodies(self) -> str:
        return f"body_{self.number}"

    @property
    def forked(self) -> str:
        return f"fork_{self.number}"

    def narrowed(self, places: int) -> "View":
        """The view without the columns at this place and behind it."""
        columns = self.columns
        if all(column.place < places for column in columns.values()):
            return self
        return replace(self, columns={name: c for name, c in columns.items() if c.place < places})


def index_sql(view: View, column: Column) -> str:
    """SQL that makes the index for exact matches on a column."""
    slot = column.slot
    return f"CREATE INDEX IF NOT EXISTS {view.table}_c{slot} ON {view.table} (c{slot})"


class Views:
    """All views. Reads are from memory; every change is written through, inside the caller's transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.seq = 0
        self.forgotten = 0  # the highest `gone` whose rows may be missing
        self._by_name: dict[str, View] = {}

    def reload(self) -> None:
        self.seq, self.forgotten = self.db.execute("SELECT seq, forgotten FROM view_clock").fetchone()
        self._by_name = {}
        for number, name, width, trunk in self.db.execute("SELECT view, name, width, trunk FROM view"):
            rows = self.db.execute(
                "SELECT place, name, slot, kind, fork_kind, hint, misfits, misfit, indexed FROM view_column "
                "WHERE view = ? ORDER BY place",
                (number,),
            )
            columns = {r[1]: Column(*r[:5], bool(r[5]), *r[6:8], bool(r[8])) for r in rows}
            self._by_name[name] = View(number, name, width, bool(trunk), columns)

    def get(self, name: str) -> View | None:
        return self._by_name.get(name)

    def places(self, name: str) -> int:
        """One more than the highest place of a view's columns; 0 when there is no such view."""
        view = self._by_name.get(name)
        return 1 + max((c.place for c in view.columns.values()), default=-1) if view else 0

    def __iter__(self) -> Iterator[View]:
        return iter(list(self._by_name.values()))

    def tick(self, count: int = 1) -> int:
        """Take `count` numbers of the sequence; the first of them."""
        first = self.seq + 1
        self.seq += count
        self.db.execute("UPDATE view_clock SET seq = ?", (self.seq,))
        return first

    def ensure(self, name: str, *, trunk: bool) -> View:
        """The view of that name, made when it is not there; `trunk` makes it queryable outside forks."""
        view = self._by_name.get(name)
        if view is None:
            self.db.execute("INSERT INTO view (name, width, trunk) VALUES (?, 0, ?)", (name, trunk))
            view = View(self.db.last_insert_rowid(), name, 0, trunk, {})
            self._create(view)
        elif trunk and not view.trunk:
            self.db.execute("UPDATE view SET trunk = 1 WHERE view = ?", (view.number,))
            view = replace(view, trunk=True)
        self._by_name[name] = view
        return view

    def drop(self, name: str) -> None:
        """Forget a view and everything in it, unless forks hold rows of it: then only its trunk ends."""
        view = self._by_name.pop(name, None)
        if view is None:
            return
        self._forgot(self.tick())  # no cursor from before may read what comes after under this name
        if self.db.execute(f"SELECT 1 FROM {view.forked} WHERE fork > 0 LIMIT 1").get:
            self.remove(view, "1", ())
            self.db.execute("UPDATE view SET trunk = 0 WHERE view = ?", (view.number,))
            self._by_name[name] = replace(view, trunk=False)
        else:
            self._drop_tables(view)
            for table in ("view", "view_column"):
                self.db.execute(f"DELETE FROM {table} WHERE view = ?", (view.number,))

    def declare(
        self,
        name: str,
        field: str,
        hint: str | None = None,
        *,
        fork_kind: str | None = None,
        bounded: bool = True,
    ) -> Column:
        """The column of a field, made when it is not there; a hint decides its kind unless it has one.

        `bounded`: raises IndexError when the view has MAX_COLUMNS columns already.
        """
        view = self._by_name[name]
        column = view.columns.get(field)
        if column is None:
            if bounded and len(view.columns) >= MAX_COLUMNS:
                raise IndexError(f"view {name} has {MAX_COLUMNS} columns already")
            column = Column(self.places(name), field, None, None, None, False, 0, None, False)
        if hint is not None and column.kind is None:
            column = replace(column, kind=hint, hint=True)
        if fork_kind is not None:
            column = replace(column, fork_kind=widest(column.fork_kind, fork_kind))
        if (column.kind or column.fork_kind) is not None and column.slot is None:
            column = self._slotted(view, column)
        return self._put(name, column)

    def typed(self, name: str, field: str, kind: str) -> Column:
        """Give a column its kind (the first value does), or widen it."""
        column = self._by_name[name].columns[field]
        column = replace(column, kind=kind)
        if column.slot is None:
            column = self._slotted(self._by_name[name], column)
        return self._put(name, column)

    def misfit(self, name: str, field: str, why: str, count: int) -> None:
        """Count values that found no place in their column; the last one stays readable."""
        column = self._by_name[name].columns[field]
        self._put(name, replace(column, misfits=column.misfits + count, misfit=why))

    def anew(self, name: str) -> None:
        """Begin a view again, without rows or columns: names and kinds are decided anew.

        Cursors from before end here. Only for a view on which no fork stands.
        """
        view = self._by_name[name]
        self._forgot(self.tick())
        self._drop_tables(view)
        self._create(view)
        self.db.execute("DELETE FROM view_column WHERE view = ?", (view.number,))
        self.db.execute("UPDATE view SET width = 0 WHERE view = ?", (view.number,))
        self._by_name[name] = replace(view, width=0, columns={})

    def indexed(self, name: str, field: str) -> None:
        """An SQL index for exact matches on a column is there now."""
        view = self._by_name.get(name)
        column = view.columns.get(field) if view else None
        if view is not None and column is not None and column.slot is not None:
            self._put(name, replace(column, indexed=True))

    def remove(self, view: View, condition: str, values: tuple[Any, ...]) -> int:
        """Take the live rows that meet an SQL condition out of the trunk; how many."""
        self.db.execute(
            f"UPDATE {view.table} SET gone = ? WHERE gone IS NULL AND {condition}", (self.seq + 1, *values)
        )
        count = self.db.changes()
        if count:
            self.tick()
        return count

    def forget_removed(self, upto: int, pinned: Iterable[int] = ()) -> None:
        """Delete rows removed at or before number `upto`, except those that a `pinned` number still sees."""
        pins = sorted(pinned)
        kept = "".join(f" AND NOT (seq <= {int(pin)} AND gone > {int(pin)})" for pin in pins)
        forgotten = 0
        for view in self:
            for table, bodies in ((view.table, view.bodies), (view.forked, None)):
                doomed = f"FROM {table} WHERE gone <= ?{kept}"
                last = self.db.execute(f"SELECT max(gone) {doomed}", (upto,)).get
                if last is not None:
                    if bodies:
                        self.db.execute(f"DELETE FROM {bodies} WHERE seq IN (SELECT seq {doomed})", (upto,))
                    self.db.execute(f"DELETE {doomed}", (upto,))
                    forgotten = max(forgotten, last)
        self._forgot(forgotten)

    def _forgot(self, number: int) -> None:
        if number > self.forgotten:
            self.forgotten = number
            self.db.execute("UPDATE view_clock SET forgotten = ?", (number,))

    def _create(self, view: View) -> None:
        self.db.execute(
            f"CREATE TABLE {view.table} (seq INTEGER PRIMARY KEY, source INTEGER, partition INTEGER, "
            '"offset" INTEGER, at INTEGER, expires INTEGER, gone INTEGER);'
            f'CREATE INDEX {view.table}_place ON {view.table} (partition, "offset");'
            f"CREATE INDEX {view.table}_expires ON {view.table} (expires) WHERE expires IS NOT NULL;"
            f"CREATE INDEX {view.table}_gone ON {view.table} (gone) WHERE gone IS NOT NULL;"
            f"CREATE TABLE {view.bodies} (seq INTEGER PRIMARY KEY, payload BLOB, vector BLOB);"
            f"CREATE TABLE {view.forked} (seq INTEGER PRIMARY KEY, fork INTEGER, partition INTEGER, "
            '"offset" INTEGER, at INTEGER, gone INTEGER, tombstone INTEGER, based INTEGER, alone INTEGER, payload BLOB, vector BLOB);'
            f'CREATE INDEX {view.forked}_place ON {view.forked} (fork, partition, "offset");'
        )

    def _drop_tables(self, view: View) -> None:
        self.db.execute(f"DROP TABLE {view.table}; DROP TABLE {view.bodies}; DROP TABLE {view.forked};")

    def _slotted(self, view: View, column: Column) -> Column:
        slot, kind = view.width, AFFINITY.get(column.kind or "", "")
        self.db.execute(
            f"ALTER TABLE {view.table} ADD COLUMN c{slot} {kind};"
            f"ALTER TABLE {view.forked} ADD COLUMN c{slot} TEXT;"
            "UPDATE view SET width = ? WHERE view = ?",
            (slot + 1, view.number),
        )
        self._by_name[view.name] = replace(view, width=slot + 1)
        return replace(column, slot=slot)

    def _put(self, name: str, column: Column) -> Column:
        view = self._by_name[name]
        if view.columns.get(column.name) != column:
            columns = {**view.columns, column.name: column}
            self._by_name[name] = replace(view, columns=columns)
            self.db.execute(
                "INSERT OR REPLACE INTO view_column VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    view.number, column.place, column.name, column.slot, column.kind, column.fork_kind,
                    column.hint, column.misfits, column.misfit, column.indexed,
                ),
            )  # fmt: skip
        return column
