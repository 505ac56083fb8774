"""Session summaries, lists and pages in the form the wire has them: pure functions over what was read."""

from collections.abc import Mapping, Sequence
from typing import Any

from desk.stack.folds import session_rows as rows
from desk.stack.folds.session_rows import Summary
from desk.stack.managed.surface import Request, SurfaceError
from desk.stack.wire import cbor

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
COUNTERS = ("events", "model_calls", "tool_calls", "tokens_in", "tokens_out", "cost_micros", "errors")
TIMES = ("started_at", "ended_at", "first_event_at", "last_event_at", "last_heartbeat_at")


def info(stream: str, summary: Summary, frontier: Sequence[Mapping[str, int]], now_us: int) -> dict[str, Any]:
    """A summary as `SessionInfo`."""
    out: dict[str, Any] = {"stream": stream, "id": summary.id}
    for name in ("label", "namespace", "agent", "parent", "root"):
        if (value := getattr(summary, name)) is not None:
            out[name] = value
    budget = cbor.loads(summary.budget) if summary.budget else {}
    out.update(
        status=summary.status,
        idle=_is_idle(summary, now_us),
        over_budget=_is_over(summary, budget),
        pause_requested=bool(summary.pause_requested),
        cancel_requested=bool(summary.cancel_requested),
    )
    for name in TIMES:
        if (value := getattr(summary, name)) is not None:
            out[name] = value
    for name in COUNTERS:
        out[name] = getattr(summary, name)
    if budget:
        out["budget"] = budget
    if summary.sdk:
        out["sdk"] = cbor.loads(summary.sdk)
    out["flags"] = {
        name: True
        for name, raised in (
            ("events_truncated", summary.events > rows.KEPT_EVENTS),
            ("control_conflict", summary.control_conflict),
        )
        if raised
    }
    if summary.held:
        out["held"] = summary.held
    if frontier:
        out["frontier"] = frontier
    return out


def limit(asked: int) -> int:
    """The page size to use; 0 asks for the default."""
    return min(asked or DEFAULT_LIMIT, MAX_LIMIT)


def numbers(cursor: str, *counts: int) -> tuple[int, ...]:
    """A cursor of ours as numbers; SurfaceError Invalid when it is none."""
    parts = cursor.split(".")
    if len(parts) not in counts or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts):
        raise SurfaceError({"Invalid": "this cursor was not given by this index"})
    return tuple(map(int, parts))


def conditions(stream: int, request: Request) -> tuple[str, tuple[Any, ...]]:
    """A list request's filters as SQL over bound parameters."""
    where, values = "stream = ?", (stream,)
    for clause, name in (("status = ?", "status"), ("agent = ?", "agent")):
        if name in request:
            where += f" AND {clause}"
            values += (request[name],)
    if "root" in request:
        where += " AND (root = ? OR id = ?)"
        values += (request["root"], request["root"])
    if "label_prefix" in request:
        where += " AND substr(label, 1, length(?)) = ?"
        values += (request["label_prefix"], request["label_prefix"])
    if "text" in request:
        where += " AND instr(search, ?)"
        values += (request["text"].lower(),)
    return where, values


def ranges(items: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    """First and last offset per partition among a page's events."""
    found: dict[tuple[int, int, int], dict[str, int]] = {}
    for item in items:
        at = item["at"]["Message"]
        key = (at["topic"], at["generation"], at["partition"])
        names = ("topic_id", "topic_generation", "partition_id")
        span = found.setdefault(
            key, {**dict(zip(names, key, strict=True)), "first": at["offset"], "last": at["offset"]}
        )
        span["first"] = min(span["first"], at["offset"])
        span["last"] = max(span["last"], at["offset"])
    return list(found.values())


def _is_idle(summary: Summary, now_us: int) -> bool:
    if summary.status != "active" or not summary.idle_timeout:
        return False
    return now_us - max(summary.last_event_at or 0, summary.last_heartbeat_at or 0) > summary.idle_timeout


def _is_over(summary: Summary, budget: Mapping[str, int]) -> bool:
    tokens, cost = budget.get("tokens"), budget.get("cost_micros")
    return (tokens is not None and summary.tokens_in + summary.tokens_out > tokens) or (
        cost is not None and summary.cost_micros > cost
    )
