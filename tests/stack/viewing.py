"""A bench with views: register, bind, publish JSON, query, and what a reply says in plain values."""

import json
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from desk.stack.query.compile import Statement
from desk.stack.wire import agdx, cbor
from desk.stack.wire.iggy import Headers
from desk.stack.wire.query_reply import Output
from tests.stack.banding import CALLER, Bench
from tests.stack.rebuilding import assert_rebuilds

STREAM, TOPIC, INDEX = "desk", "events", "stream:desk/events"
JSON: Headers = {"agdx.ct": ("u8", b"\x01")}
PROJECTION = "stream:desk/events.v1"


class Views:
    """What a client does with views, over a bench; the clock is the real one, as deadlines are."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.executions = 0
        bench.clock.us = now_us()

    def control(self, command: Mapping[str, Any], **envelope: Any) -> Any:
        """One control command; the reply's code."""
        request = {"v": 1, "timestamp_micros": 0, "command": command, **envelope}
        reply = cbor.loads(self.bench.send(agdx.CONTROL_PUBLISH, self.bench.frame(request)))
        return (cbor.loads(reply["reply"]) if "reply" in reply else reply)["code"]

    def project(
        self, *fields: str | tuple[str, str] | tuple[str, str, str], id: str = PROJECTION, **more: Any
    ):
        """Register a projection of fields: "name", (name, pointer) or (name, pointer, hint)."""
        rules = []
        for field in fields:
            name, pointer, *hint = (field, f"/{field}") if isinstance(field, str) else field
            rules.append({"name": name, "pointer": pointer, **({"field_type": hint[0]} if hint else {})})
        extraction = {"fields": rules, "inline_payload": more.pop("inline", True)}
        if "vector_field" in more:
            extraction["vector_field"] = more.pop("vector_field")
        body = {"id": id, "name": "events", "version": 1, "content_type": "json", **more}
        body |= {"extraction": extraction, "inline_payload_default": extraction["inline_payload"]}
        assert self.control({"RegisterProjection": body}) == "ok"

    def bind(self, topic: str = TOPIC, *, partitions: int = 1, index: str = INDEX, **more: Any) -> None:
        """Make the topic (unless `partitions` is 0) and bind it."""
        if partitions:
            self.bench.log.ensure(STREAM, topic, partitions)
        default = more.pop("default", PROJECTION)
        body = {"source": {"stream": STREAM, "topic": topic}}
        body |= {"allowed_projections": more.pop("allowed", [default]), "default_projection": default}
        assert self.control({"ApplyBinding": {**body, "index": index, **more}}) == "ok"

    def publish(
        self, *documents: Any, topic: str = TOPIC, partition: int = 0, headers: Headers = JSON
    ) -> int:
        """Append documents (bytes as they are, else as JSON) as one batch."""
        bodies = [d if isinstance(d, bytes) else json.dumps(d).encode() for d in documents]
        return self.bench.publish(STREAM, topic, [(body, headers) for body in bodies], partition)

    async def ask(self, code: int, request: Mapping[str, Any]) -> Any:
        """The decoded reply of a plain command that may answer later."""
        self.bench.clock.us = max(self.bench.clock.us, now_us())
        answer = self.bench.band.handle(code, cbor.dumps(request), CALLER)
        return cbor.loads(await answer if isinstance(answer, Awaitable) else answer)

    async def reply(self, index: str = INDEX, **parts: Any) -> Any:
        """The whole reply of a query; `parts` are keys of the wire's query, `limit`/`offset`/`cursor` its page."""
        page = {"limit": parts.pop("limit", 1000)}
        if "cursor" in parts:
            page["cursor"] = parts.pop("cursor")
        else:
            page["offset"] = parts.pop("offset", 0)
        if parts.pop("want_total", False):
            page["want_total"] = True
        self.executions += 1
        query = {
            "execution_id": parts.pop("execution_id", self.executions.to_bytes(16, "big")),
            "target": {"kind": "operational", "index": index},
            "deadline_micros": parts.pop("deadline_micros", self.bench.clock.us + 60_000_000),
            "page": page,
            **parts,
        }
        return await self.ask(agdx.QUERY, {"v": 1, "query": query})

    async def page(self, index: str = INDEX, **parts: Any) -> Any:
        """What a query answers under `Ok`."""
        reply = await self.reply(index, **parts)
        assert "Ok" in reply, reply
        return reply["Ok"]

    async def error(self, index: str = INDEX, **parts: Any) -> Any:
        return (await self.reply(index, **parts))["Err"]

    async def rows(self, *names: str, index: str = INDEX, **parts: Any) -> list[Any]:
        """The rows as tuples of these columns, or as dicts without the protocol's own columns."""
        return plain(await self.page(index, **parts), *names)

    async def walk(self, **parts: Any) -> list[list[Any]]:
        """Every page of a query as fetch_all walks them: the same query with each page's cursor."""
        pages, cursor = [], {}
        while True:
            page = await self.page(**parts, **cursor)
            pages.append(plain(page))
            if not page["page"]["has_more"]:
                return pages
            cursor = {"cursor": page["page"]["next_cursor"]}

    def ops(self, topic: str) -> list[Any]:
        """What lies on a topic of the ops stream, decoded."""
        read = cbor.loads if topic == agdx.CHANGES_TOPIC else json.loads
        return [read(record.payload) for record in self.bench.log.read(agdx.OPS_STREAM, topic, 0, 0)]

    def assert_rebuilds(self) -> int:
        return assert_rebuilds(self.bench.store.db, self.bench.log, self.bench.clock.us)


def plain(page: Mapping[str, Any], *names: str) -> list[Any]:
    """A page's rows as plain values; checks what every client checks: one type a column, no odd row."""
    fields = page["fields"]
    columns = [field["name"] for field in fields]
    assert len(set(columns)) == len(columns) and len({field["id"] for field in fields}) == len(fields) > 0
    assert page["context"]["row_count"] == len(page["rows"])
    assert page["page"]["has_more"] == ("next_cursor" in page["page"])
    out = []
    for row in page["rows"]:
        assert len(row["values"]) == len(fields)
        for cell, field in zip(row["values"], fields, strict=True):
            assert cell["kind"] in ("null", field["field_type"]["kind"]), (cell, field)
        out.append({n: cell.get("value") for n, cell in zip(columns, row["values"], strict=True)})
    if names:
        return [row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in out]
    return [{k: v for k, v in row.items() if not k.startswith("__laser_")} for row in out]


def pred(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"pred": {"field": field, "op": op, "value": typed(value)}}


def typed(value: Any) -> dict[str, Any]:
    """A plain value as the wheel types it."""
    if value is None:
        return {"kind": "null"}
    if isinstance(value, list):
        return {"kind": "list", "value": [typed(item) for item in value]}
    kind = {bool: "boolean", int: "long", float: "double", str: "string"}[type(value)]
    return {"kind": kind, "value": value}


def agg(
    func: str, field: str | None = None, alias: str | None = None, arg: float | None = None
) -> dict[str, Any]:
    call: dict[str, Any] = {"func": func, "alias": alias or func}
    return call | ({"field": field} if field else {}) | ({} if arg is None else {"arg": arg})


def key(**fields: Any) -> list[dict[str, Any]]:
    return [{"field": name, "value": typed(value)} for name, value in fields.items()]


def order(*fields: str) -> list[dict[str, str]]:
    """ "name" ascending, "-name" descending."""
    return [{"field": f.lstrip("-"), "dir": "desc" if f.startswith("-") else "asc"} for f in fields]


def now_us() -> int:
    return time.time_ns() // 1000


def endless(query: Any, snapshot: Any, page: Any) -> Statement:
    """In place of the query compiler: a statement that never ends by itself."""
    sql = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    return Statement(sql, (), [Output("x", "long")], False, False, None)


Documents = Iterable[Mapping[str, Any]]
