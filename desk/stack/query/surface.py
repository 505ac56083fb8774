"""The query surface: query, next page, status, cancel. Decides what is seen; compiling and running is elsewhere."""

import asyncio
import time
from collections.abc import Awaitable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import apsw

from desk.stack.broker.log import Log
from desk.stack.managed.hello import RESOURCE_ID
from desk.stack.managed.surface import Context, PlainHandler, Request, Surface, SurfaceError
from desk.stack.query.ahead import Ahead
from desk.stack.query.compile import Page, Statement, compiled
from desk.stack.query.executions import Execution, Executions
from desk.stack.query.indexer import Indexer
from desk.stack.query.kinds import I64_MAX
from desk.stack.query.pages import Cursor, digest
from desk.stack.query.relation import Gap, Snapshot
from desk.stack.query.runner import Runner, Stopped
from desk.stack.store import Store, StoreError
from desk.stack.wire import agdx, cbor
from desk.stack.wire.agdx import Feature
from desk.stack.wire.query import BINARY, REQUESTS, QueryFault, checked, invalid
from desk.stack.wire.query_reply import Evidence, encode_rows, fields, reply_context, reply_page

ENGINE = {"name": "sqlite", "version": apsw.sqlite_lib_version(), "dialect": "sqlite"}
MAX_PAGE_BYTES = 32 << 20  # a page of payloads ends early here
MAX_REPLY_BYTES = agdx.MAX_FRAME_BYTES - (1 << 20)


@dataclass(frozen=True, slots=True)
class Result:
    """One page, as the thread hands it back. Sizes in bytes."""

    fields: list[dict[str, Any]]
    rows: cbor.Encoded
    count: int
    more: bool
    last: int  # seq of the last row, when pages go by it
    total: int | None
    scanned: int


class Queries(Surface):
    """Reads of views and forks."""

    name = "query"
    versions: ClassVar[Mapping[str, int]] = {"query": 1}
    features = Feature.READ_YOUR_WRITES | Feature.STRONG_CONSISTENCY
    shapes = REQUESTS
    later: ClassVar[frozenset[int]] = frozenset({agdx.QUERY, agdx.QUERY_PAGE})

    def __init__(self, store: Store, log: Log) -> None:
        super().__init__(store, log)
        self.runner = Runner(store.reader)
        self._executions = Executions()
        self._ahead = Ahead()
        self._indexer = Indexer(store)

    def query_block(self) -> Mapping[str, Any]:
        return {
            "dialects": ["sqlite"],
            "time_travel": [],
            "consistency": ["eventual", "read_your_writes", "strong"],
            "logical_types": ["boolean", "long", "double", "string", "binary"],
            "paging": ["offset", "cursor"],
            "cancellation": True,
            "execution_status": True,
            "raw_sql": False,
        }

    def query(self, request: Request, context: Context) -> Awaitable[Any]:
        return self._answer(request["query"], context)

    def page(self, request: Request, context: Context) -> Awaitable[Any]:
        known = self._known(request).query
        page = {"limit": known["page"]["limit"], "cursor": request["cursor"]}
        if known["page"].get("want_total"):
            page["want_total"] = True
        return self._answer({**known, "page": page, "deadline_micros": request["deadline_micros"]}, context)

    def cancel(self, request: Request, context: Context) -> dict[str, Any]:
        execution = self._known(request)
        if execution.job is not None:
            execution.cancel()
            execution.end("cancelled", context.now_us)
        return execution.wire()

    def status(self, request: Request, _context: Context) -> dict[str, Any]:
        return self._known(request).wire()

    def close(self) -> None:
        """The readers go; a query that does not end in a second keeps its own."""
        self.runner.close()

    plain: ClassVar[Mapping[int, PlainHandler]] = {
        agdx.QUERY: query,
        agdx.QUERY_PAGE: page,
        agdx.QUERY_CANCEL: cancel,
        agdx.QUERY_STATUS: status,
    }

    def _known(self, request: Request) -> Execution:
        execution = self._executions.get(request["execution_id"])
        if execution is None:
            raise SurfaceError({"IndexNotFound": "no query with this execution id"})
        return execution

    def _answer(self, query: Request, context: Context) -> Awaitable[Any]:
        try:
            return self._begin(checked(query), context)
        except QueryFault as fault:
            raise SurfaceError(fault.value) from None

    def _begin(self, query: Request, context: Context) -> Awaitable[Any]:
        """Fix what the query sees, here and now; the rest may take its time."""
        deadline = query["deadline_micros"]
        if context.now_us >= deadline:
            raise SurfaceError({"DeadlineExceeded": {"execution_id": query["execution_id"]}})
        digested, page = digest(query), query["page"]
        gaps = self._settled(query["target"]["index"], context.surface("registry"))
        if page.get("cursor") is not None:
            cursor = Cursor.decode(page["cursor"], digested)
        else:
            views, skip = context.surface("registry").views, min(page.get("offset") or 0, I64_MAX)
            cursor = Cursor(views.seq, context.now_us, 0, skip, views.places(query["target"]["index"]))
        snapshot = self._snapshot(query, cursor, context, gaps)
        frontier = context.surface("registry").projector.frontier(snapshot.view)
        part = cursor.page(page["limit"])
        execution = self._executions.start(query["execution_id"], query, context.now_us)
        execution.job = self._ahead.take(_question(query, digested, part), snapshot)
        if execution.job is None:
            work = partial(_run, query=query, snapshot=snapshot, page=part)
            execution.job = self.runner.submit(work, deadline, execution.begin)
        else:
            execution.begin()
            execution.job.expire_at(deadline)
        return self._finish(execution, cursor, digested, snapshot, frontier, time.perf_counter())

    def _look_ahead(self, query: Request, digested: bytes, snapshot: Snapshot, page: Page) -> None:
        """Begin the page after the one that was just sent."""
        if self.runner.idle:
            work = partial(_run, query=query, snapshot=snapshot, page=page)
            job = self.runner.submit(work, query["deadline_micros"])
            self._ahead.keep(_question(query, digested, page), snapshot, job)

    async def _finish(
        self,
        execution: Execution,
        cursor: Cursor,
        digested: bytes,
        snapshot: Snapshot,
        frontier: list[Any],
        began: float,
    ) -> dict[str, Any]:
        job = execution.job
        assert job is not None
        try:
            result: Result = await job.future
        except Stopped as stop:
            by_deadline = stop.why == "deadline"
            execution.end("expired" if by_deadline else "cancelled", _now_us())
            kind = "DeadlineExceeded" if by_deadline else "Cancelled"
            raise SurfaceError({kind: {"execution_id": execution.id}}) from None
        except asyncio.CancelledError:  # the client is gone
            execution.end("cancelled", _now_us())
            raise
        except (QueryFault, apsw.Error, MemoryError) as error:
            value = _refusal(error)
            execution.end("failed", _now_us(), value)
            raise SurfaceError(value) from error
        execution.scanned, execution.produced, execution.rows = result.scanned, len(result.rows), result.count
        execution.end("completed", _now_us())
        following = None
        if result.more:
            skip = 0 if result.last else cursor.skip + result.count
            upcoming = replace(cursor, after=result.last, skip=skip)
            following = upcoming.encode(digested)
            query = execution.query
            if query["page"].get("cursor") is not None:  # who has turned one page will turn the next
                page = upcoming.page(query["page"]["limit"])
                # once this reply is on its way
                asyncio.get_running_loop().call_soon(self._look_ahead, query, digested, snapshot, page)
        evidence = Evidence(
            ENGINE,
            RESOURCE_ID,
            int((time.perf_counter() - began) * 1_000_000),
            result.scanned,
            len(result.rows),
            result.count,
            frontier,
        )
        return {
            "fields": result.fields,
            "rows": result.rows,
            "page": reply_page(execution.query["page"], result.total, following),
            "context": reply_context(execution.query, evidence),
        }

    def _settled(self, index: str, registry: Any) -> Sequence[Gap]:
        """Rows whose records are gone leave the view now, so that only who was pinned before still sees them.

        Returns the gaps that stay.
        """
        view = registry.views.get(index)
        gaps = registry.projector.gaps(view) if view else ()
        if gaps:
            try:
                with self.store.transaction():
                    registry.projector.settle(view)
                return ()
            except StoreError:  # a full disk: the snapshot leaves them out, for everybody
                registry.reload()
        return gaps

    def _snapshot(self, query: Request, cursor: Cursor, context: Context, gaps: Sequence[Gap]) -> Snapshot:
        registry = context.surface("registry")
        name, upto, layers = query["target"]["index"], cursor.upto, ()
        if query.get("fork") is not None:
            upto, layers = context.surface("forks").chain(query["fork"], upto)
        view = registry.views.get(name)
        if view is None or not (view.trunk or layers):
            raise SurfaceError({"IndexNotFound": name})
        if query["page"].get("cursor") is not None and cursor.upto < registry.views.forgotten:
            raise SurfaceError({"ExpiredSnapshot": {"snapshot_id": cursor.upto}})
        if cursor.upto > registry.views.seq:
            raise invalid("the cursor is not one this stack gave")
        self._indexer.want(registry.views, view, [key["field"] for key in query.get("by_key") or ()])
        view = (registry.views.get(name) or view).narrowed(cursor.columns)
        expiring = registry.projector.expiring(view)
        return Snapshot(view, upto, cursor.now_us, tuple(layers), tuple(gaps), expiring)


def _question(query: Request, digested: bytes, page: Page) -> Hashable:
    """What a page is the answer to, but for the snapshot."""
    return digested, page, bool(query["page"].get("want_total"))


def _run(db: apsw.Connection, query: Request, snapshot: Snapshot, page: Page) -> Result:
    """In a thread: one page and, when asked for, the count of everything, as of one moment."""
    before = _pages_read(db)
    with db:
        exact = db.execute(
            "SELECT seq = ? AND NOT EXISTS (SELECT 1 FROM "
            f"{snapshot.view.table} WHERE gone IS NOT NULL) FROM view_clock",
            (snapshot.upto,),
        ).get
        statement = compiled(query, replace(snapshot, exact=bool(exact)), page)
        rows, cut = _fetched(db, statement)
        total = None
        if statement.total:
            total = db.execute(*statement.total).get
    more = cut or len(rows) > page.limit
    rows = rows[: page.limit]
    last = rows[-1][0] if rows and statement.keyed else 0
    content = [row[1:] for row in rows] if statement.keyed else rows
    encoded = encode_rows(statement.columns, content, scored=statement.scored)
    if len(encoded) > MAX_REPLY_BYTES:
        limit = {"resource": "reply bytes", "observed": len(encoded), "limit": MAX_REPLY_BYTES}
        raise QueryFault({"ResourceLimit": limit})
    scanned = (_pages_read(db) - before) * 4096
    return Result(fields(statement.columns), encoded, len(rows), more, last, total, scanned)


def _fetched(db: apsw.Connection, statement: Statement) -> tuple[list[Sequence[Any]], bool]:
    """The rows, and whether a page of payloads was ended early to stay small."""
    found = db.execute(statement.sql, statement.parameters)
    if all(column.kind != BINARY for column in statement.columns):
        return found.fetchall(), False
    rows, size = [], 0
    for row in found:
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if rows and size > MAX_PAGE_BYTES:
            return rows, True
        rows.append(row)
    return rows, False


def _refusal(error: Exception) -> Any:
    """What goes under `Err`."""
    if isinstance(error, QueryFault):
        return error.value
    if isinstance(error, apsw.SQLError) and str(error).startswith("no such"):
        return {"Unavailable": "the view changed while the query waited; ask again"}
    return {"Backend": str(error)}


def _pages_read(db: apsw.Connection) -> int:
    hits = db.status(apsw.SQLITE_DBSTATUS_CACHE_HIT)[0]
    return hits + db.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]


def _now_us() -> int:
    return time.time_ns() // 1000
