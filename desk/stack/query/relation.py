"""The rows a query reads, as an SQL table expression: a view at one sequence number, forks laid over it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from desk.stack.query.filters import Bindings, Term, joined
from desk.stack.query.views import Column, View
from desk.stack.wire.query import DOUBLE, LONG, OFFSET, PARTITION, STRING, TIME


@dataclass(frozen=True, slots=True)
class Layer:
    """One fork of a chain: its number, and the last change of it that is seen."""

    fork: int
    upto: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows whose records left the log but which no sweep has removed yet."""

    source: int
    partition: int | None  # None: all partitions
    before: int  # offsets below


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a query sees: the view, the last change of its trunk, the clock, the forks from the trunk outwards."""

    view: View
    upto: int
    now_us: int
    layers: tuple[Layer, ...] = ()
    gaps: tuple[Gap, ...] = ()
    expiring: bool = False  # some rows have an end
    exact: bool = False  # the file stands at `upto` and every row of the trunk is live: nothing to leave out


class Rows:
    """Names of a snapshot's rows as terms over `r`, and the table expression `r` they stand on."""

    def __init__(self, snapshot: Snapshot, bind: Bindings) -> None:
        self._snapshot = snapshot
        self._bind = bind
        self._used: dict[int, Column] = {}
        self._bodies = False

    def __call__(self, name: str) -> Term:
        """A field's term; `ts` falls back to the broker's time where a record has none."""
        if name == PARTITION:
            return Term("r.partition", LONG)
        if name == OFFSET:
            return Term('r."offset"', LONG)
        column = self._snapshot.view.columns.get(name)
        kind = self.kind(column)
        if column is None or column.slot is None or (column.fork_only and not self._snapshot.layers):
            return Term("r.at", LONG) if name == TIME else Term("NULL", None)
        self._used[column.slot] = column
        cell = f"r.c{column.slot}"
        if name == TIME and kind in (LONG, DOUBLE):
            return Term(f"coalesce({cell}, r.at)", kind)
        return Term(cell, kind)

    def kind(self, column: Column | None) -> str | None:
        """A column's kind in this snapshot; what forks were given counts only inside forks."""
        if column is None:
            return None
        return column.kind or (column.fork_kind if self._snapshot.layers else None)

    @property
    def payload(self) -> str:
        self._bodies = True
        if self._snapshot.layers:
            return "r.payload"
        return f"(SELECT payload FROM {self._snapshot.view.bodies} b WHERE b.seq = r.seq)"

    @property
    def vector(self) -> str:
        self._bodies = True
        if self._snapshot.layers:
            return "r.vector"
        return f"(SELECT vector FROM {self._snapshot.view.bodies} b WHERE b.seq = r.seq)"

    def source(self) -> tuple[str, list[str]]:
        """(table expression named r, conditions) once every term was asked for."""
        snapshot = self._snapshot
        if not snapshot.layers:
            return f"{snapshot.view.table} AS r", self._live("r")
        table = self._trunk()
        for layer in snapshot.layers:
            table = self._overlaid(table, layer)
        return f"({table}) AS r", []

    def _live(self, name: str) -> list[str]:
        snapshot, bind = self._snapshot, self._bind
        parts = []
        if not snapshot.exact:
            seen = bind(snapshot.upto)
            parts += [f"{name}.seq <= {seen}", f"({name}.gone IS NULL OR {name}.gone > {seen})"]
        if snapshot.expiring:
            parts.append(f"({name}.expires IS NULL OR {name}.expires > {bind(snapshot.now_us)})")
        for gap in snapshot.gaps:
            place = f"{name}.source = {bind(gap.source)}"
            if gap.partition is not None:
                place += (
                    f' AND {name}.partition = {bind(gap.partition)} AND {name}."offset" < {bind(gap.before)}'
                )
            parts.append(f"NOT ({place})")
        return parts

    def _trunk(self) -> str:
        view = self._snapshot.view
        columns = ["t.seq", "t.partition", 't."offset"', "t.at"]
        columns += [
            f"t.c{slot}" if column.kind else f"NULL AS c{slot}" for slot, column in self._used.items()
        ]
        if self._bodies:
            columns += [
                f"(SELECT {name} FROM {view.bodies} b WHERE b.seq = t.seq) AS {name}"
                for name in ("payload", "vector")
            ]
        return f"SELECT {', '.join(columns)} FROM {view.table} t{where(self._live('t'))}"

    def _overlaid(self, below: str, layer: Layer) -> str:
        """Rows of `below` with the fork's cells over them, and the rows only the fork has."""
        view, bind = self._snapshot.view, self._bind
        own = (
            f"SELECT * FROM {view.forked} WHERE fork = {bind(layer.fork)} AND seq <= {bind(layer.upto)} "
            f"AND (gone IS NULL OR gone > {bind(layer.upto)})"
        )
        same = 'f.partition = t.partition AND f."offset" = t."offset"'
        merged = ["coalesce(f.seq, t.seq) AS seq", "t.partition", 't."offset"', "t.at"]
        fresh = ["f.seq", "f.partition", 'f."offset"', "f.at"]
        for slot, column in self._used.items():
            cell = f"fitted(f.c{slot}, '{self.kind(column)}')"
            merged.append(f"coalesce({cell}, t.c{slot}) AS c{slot}")
            fresh.append(f"{cell} AS c{slot}")
        if self._bodies:
            merged += [f"coalesce(f.{name}, t.{name}) AS {name}" for name in ("payload", "vector")]
            fresh += ["f.payload", "f.vector"]
        return (
            f"SELECT {', '.join(merged)} FROM ({below}) t LEFT JOIN ({own}) f ON {same} "
            f"WHERE f.tombstone IS NOT 1 "
            f"UNION ALL SELECT {', '.join(fresh)} FROM ({own}) f WHERE NOT f.tombstone "
            f"AND NOT EXISTS (SELECT 1 FROM ({below}) t WHERE {same})"
        )


def where(parts: Sequence[str]) -> str:
    """A WHERE of all the parts, nothing when there are none: SQLite counts a bare table without reading it."""
    return f" WHERE {joined(parts, 'AND')}" if parts else ""


def listed(snapshot: Snapshot) -> Iterable[str]:
    """The fields a query returns when it names none: every column, in the projections' order."""
    forked = bool(snapshot.layers)
    columns: Sequence[Column] = sorted(snapshot.view.columns.values(), key=lambda c: c.place)
    return [c.name for c in columns if forked or not c.fork_only]


def shown_kind(kind: str | None) -> str:
    """The kind a page gives a column: one that never held a value is text, all null."""
    return kind or STRING
