"""A query's SQL, run directly on the stack's file: what the stack may not be much slower than."""

import time
from pathlib import Path

import apsw
import laser_sdk as ls

from desk.stack.query import functions
from desk.stack.query.compile import Page, Statement, compiled
from desk.stack.query.relation import Snapshot
from desk.stack.query.views import Views
from desk.stack.store import FILE
from desk.stack.wire.query import checked


class View:
    """One view of a stack's data folder, read beside the running stack; `name` is scoped (`stream:<s>/<name>`)."""

    def __init__(self, folder: Path, name: str) -> None:
        self._db = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READONLY)
        functions.register(self._db)
        self._name = name

    def statement(self, request: ls.QueryRequest) -> Statement:
        """What the stack makes of a request."""
        query = checked({**request.into_query(), "execution_id": bytes(16)})
        views = Views(self._db)
        views.reload()
        view = views.get(self._name)
        assert view is not None, f"no view {self._name}"
        snapshot = Snapshot(view, views.seq, time.time_ns() // 1000, exact=True)  # nothing was ever removed
        return compiled(query, snapshot, Page(query["page"]["limit"]))

    async def run(self, statement: Statement) -> None:
        """Execute and fetch everything."""
        self._db.execute(statement.sql, statement.parameters).fetchall()

    def close(self) -> None:
        self._db.close()
