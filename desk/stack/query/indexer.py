"""SQL indexes for exact matches: the first match on a field makes it worth one.

On a small view that takes a moment and is done at once. On a large one a thread with a connection of its own
builds it, so that the loop goes on reading (a write may wait for it), and queries use it when it is there.
"""

import asyncio
import threading
from collections.abc import Sequence

import apsw

from desk.stack.query.views import Column, View, Views, index_sql
from desk.stack.store import Store

AT_ONCE = 20_000  # rows indexed within some ten milliseconds
MOST = 8  # indexes of one view: each makes every append a little slower
PATIENCE_MS = 1_000  # how long the thread waits for its turn to write


class Indexer:
    """Makes indexes, one at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._busy = False

    def want(self, views: Views, view: View, fields: Sequence[str]) -> None:
        """These fields of a view are matched exactly."""
        for field in fields:
            column = view.columns.get(field)
            if column is None or column.kind is None or column.slot is None or column.indexed:
                continue
            if sum(c.indexed for c in view.columns.values()) < MOST:
                self._make(views, view, column)

    def _make(self, views: Views, view: View, column: Column) -> None:
        span = self._store.db.execute(f"SELECT max(seq) - min(seq) FROM {view.table}").get or 0
        if span < AT_ONCE:
            with self._store.transaction():
                self._store.db.execute(index_sql(view, column))
                views.indexed(view.name, column.name)
        elif not self._busy:
            self._busy = True
            loop = asyncio.get_running_loop()
            work = threading.Thread(target=self._build, args=(loop, views, view, column), daemon=True)
            work.start()

    def _build(self, loop: asyncio.AbstractEventLoop, views: Views, view: View, column: Column) -> None:
        made = False
        try:
            db = apsw.Connection(str(self._store.path))
            db.set_busy_timeout(PATIENCE_MS)
            db.execute(index_sql(view, column))
            db.close()
            made = True
        except apsw.Error:
            pass  # busy, full, or the view is gone: a later query asks again
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._built, views, view, column, made)

    def _built(self, views: Views, view: View, column: Column, made: bool) -> None:
        self._busy = False
        now = views.get(view.name)
        same = now is not None and now.number == view.number and now.columns.get(column.name)
        if made and same and same.slot == column.slot:
            with self._store.transaction():
                views.indexed(view.name, column.name)
