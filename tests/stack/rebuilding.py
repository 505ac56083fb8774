"""Views equal a rebuild from the log: call `assert_rebuilds` after every test that writes.

It copies the data file, projects every binding again from the earliest retained record in the copy, and
compares every live row, cell by cell, payloads and vectors too. Works on a running stack's folder as well.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from desk.stack.broker.groups import Groups
from desk.stack.broker.log import Log
from desk.stack.broker.ports import BrokerLog
from desk.stack.broker.state import Broker
from desk.stack.broker.topology import Topology
from desk.stack.managed.registry import Registry
from desk.stack.query.relation import Gap
from desk.stack.query.views import View
from desk.stack.store import FILE

Rows = dict[tuple[int, int, int], dict[str, Any]]


class CopiedStore:
    """A copy in memory of a data file, as far as a surface needs a store."""

    def __init__(self, source: apsw.Connection) -> None:
        self.db = apsw.Connection(":memory:")
        with self.db.backup("main", source, "main") as backup:
            backup.step()

    def meta(self, name: str, default: int = 0) -> int:
        return self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).get or default


class ReadOnlyLog:
    """A log that is read; what folds write beside their rows is dropped."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def ensure(self, *_: Any) -> None:
        return None

    def append(self, *_: Any) -> int:
        return 0


def assert_rebuilds(source: apsw.Connection, log: Log | None = None, now_us: int | None = None) -> int:
    """Compare, and count the rows compared. `log` is where the records are, if not in the file itself."""
    now_us = now_us or time.time_ns() // 1000
    store = CopiedStore(source)
    registry = Registry(store, ReadOnlyLog(log or _log_in(store)))  # type: ignore[arg-type]
    registry.reload()
    compared = 0
    before = {
        view.name: rows_of(store.db, view, now_us, registry.projector.gaps(view)) for view in registry.views
    }
    for binding in registry.definitions.bound():
        registry.projector.rebuild(binding)
    for name, rows in before.items():
        view = registry.views.get(name)
        assert view is not None
        assert rows_of(store.db, view, now_us) == rows, name
        compared += len(rows)
    store.db.close()
    return compared


def assert_folder_rebuilds(folder: Path) -> int:
    """The same for the folder of a stack that may be running."""
    source = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return assert_rebuilds(source)
    finally:
        source.close()


def rows_of(db: apsw.Connection, view: View, now_us: int, gaps: Sequence[Gap] = ()) -> Rows:
    """Every row a query would see at a time, by source (0: a fork's), partition, offset."""
    columns = [
        column for column in view.columns.values() if column.slot is not None and column.kind is not None
    ]
    cells = "".join(f", r.c{column.slot}" for column in columns)
    found = db.execute(
        f'SELECT r.partition, r."offset", r.source, r.at, r.expires, b.payload, b.vector{cells} '
        f"FROM {view.table} r LEFT JOIN {view.bodies} b USING (seq) "
        "WHERE r.gone IS NULL AND coalesce(r.expires > ?, true)",
        (now_us,),
    )
    names = ["at", "expires", "payload", "vector", *(column.name for column in columns)]
    rows: Rows = {}
    for partition, offset, number, *content in found:
        place = number, partition, offset
        if any(g.source == number and g.partition in (None, partition) and offset < g.before for g in gaps):
            continue
        assert place not in rows, f"two rows at {place}"
        rows[place] = {name: value for name, value in zip(names, content, strict=True) if value is not None}
    return rows


def _log_in(store: CopiedStore) -> Log:
    broker = Broker(store, "iggy", "127.0.0.1", 0, Topology(store), Groups(0))  # type: ignore[arg-type]
    return BrokerLog(broker)
