"""Every question the delivery desk asks of its views, once. Rows come back as plain dictionaries.

A fork's name asks the same question of that fork. Grouped queries are one page, so the limit is far above a day.
Anybody's records are in a view, too: a row without the words it is grouped by is passed over.
"""

from collections.abc import Iterator
from typing import Any

import laser_sdk as ls

from desk.delivery.carrier import Work

_LIMIT = 1_000  # the largest page there is
_FARTHEST = 10_000_000.0  # metres: farther no van drives, whoever reports it


class ViewError(Exception):
    """A view does not tell what it should. Its text is a sentence for a person."""


async def delivered(laser: ls.Laser, fork: str | None = None) -> dict[str, int]:
    """Drops made by each van; a van without one is absent."""
    return await _per_van(laser, "delivered", fork)


async def failed(laser: ls.Laser, fork: str | None = None) -> dict[str, int]:
    """Failed drops of each van."""
    return await _per_van(laser, "failed", fork)


async def metres(laser: ls.Laser, fork: str | None = None) -> dict[str, float]:
    """How far each van has driven: the highest odometer it reported.

    Raises ViewError when the view keeps words for metres: what is first in a column says what the column holds, and
    of words the highest is not the farthest.
    """
    query = _on(laser.query("fleet_positions"), fork)
    query = query.filter_gte("metres", 0.0).filter_lte("metres", _FARTHEST)
    rows = list(_fitting(await _rows(query.max("metres").group_by(["van"])), "van"))
    if words := [row["max"] for row in rows if isinstance(row["max"], str)]:
        raise ViewError(f"The view fleet_positions holds words for metres, such as {words[0]!r}.")
    return {row["van"]: float(row["max"]) for row in rows if row["max"] is not None}


async def stops(laser: ls.Laser, kind: str) -> list[tuple[str, str, int]]:
    """(van, stop, how often) of an event kind such as delivered or failed."""
    query = laser.query("fleet_events").where_eq("kind", kind).count().group_by(["van", "stop"])
    rows = _fitting(await _rows(query), "van", "stop")
    return sorted((row["van"], row["stop"], row["count"]) for row in rows)


async def work(laser: ls.Laser) -> dict[str, Work]:
    """What each van did today: where it delivered, where it failed, how far it drove."""
    made, missed, driven = await stops(laser, "delivered"), await stops(laser, "failed"), await metres(laser)
    return {
        van: Work(
            tuple(stop for v, stop, n in made for _ in range(n) if v == van),
            tuple(stop for v, stop, n in missed for _ in range(n) if v == van),
            driven[van],
        )
        for van in sorted(driven)
    }


async def steps(laser: ls.Laser, kind: str = "start") -> list[tuple[str, str, str, int]]:
    """(incident, step, agent, how often): by default, which copy began which step."""
    query = laser.query("fleet_events").where_eq("kind", kind).count().group_by(["incident", "step", "agent"])
    rows = _fitting(await _rows(query), "incident", "step", "agent")
    return sorted((row["incident"], row["step"], row["agent"], row["count"]) for row in rows)


async def per_agent(laser: ls.Laser, kind: str) -> dict[str, int]:
    """How many events of a kind (step, killed, replay …) each agent has."""
    query = laser.query("fleet_events").where_eq("kind", kind).count().group_by(["agent"])
    return {row["agent"]: row["count"] for row in _fitting(await _rows(query), "agent")}


async def happened(laser: ls.Laser, kind: str, incident: str, step: str | None = None) -> bool:
    """Whether the log already says this of an incident (and a step of it)."""
    query = laser.query("fleet_events").where_eq("kind", kind).where_eq("incident", incident)
    if step is not None:
        query = query.where_eq("step", step)
    return bool(await _rows(query.count().group_by(["kind"])))


async def _per_van(laser: ls.Laser, kind: str, fork: str | None) -> dict[str, int]:
    query = _on(laser.query("fleet_events"), fork).where_eq("kind", kind).count().group_by(["van"])
    return {row["van"]: row["count"] for row in _fitting(await _rows(query), "van")}


def _fitting(rows: list[dict[str, Any]], *columns: str) -> Iterator[dict[str, Any]]:
    """The rows that have a word in each of these columns."""
    return (row for row in rows if all(isinstance(row[name], str) and row[name] for name in columns))


def _on(query: ls.QueryRequest, fork: str | None) -> ls.QueryRequest:
    return query.fork(fork) if fork else query


async def _rows(query: ls.QueryRequest) -> list[dict[str, Any]]:
    result = await query.limit(_LIMIT).fetch()
    if result.page.has_more:
        raise RuntimeError(f"A question about the day has more than {_LIMIT} answers.")
    names = [field["name"] for field in result.fields]
    return [{name: (result.value(row, name) or {}).get("value") for name in names} for row in result.rows]
