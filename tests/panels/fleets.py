"""A delivery desk that is only a log: what panels ask of one, answered from the records of a small day."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from desk.control import DeskError
from desk.control.fleet_reading import Prompt
from desk.delivery.planning.round import Round
from tests.analysis.tuesday import records


class Cursor:
    """Gives what has been written since the last poll."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.at = rows, 0

    async def poll(self) -> list[Any]:
        new, self.at = self.rows[self.at :], len(self.rows)
        return [SimpleNamespace(json=lambda row=row: row) for row in new]


class PaperFleet:
    """Nothing runs; tests write to `positions` and call `happen`. `asked` is what was asked of it."""

    day = "tue"

    def __init__(self) -> None:
        self.positions: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self.asked: list[tuple[Any, ...]] = []
        self.round_of: dict[str, Round] = {}
        self.state_of: dict[str, dict[str, Any]] = {}
        self.prompts: list[Prompt] = []
        self.letters: dict[str, dict[str, Any]] = {}
        self.stopped = False
        self.log = SimpleNamespace(foreign=0)
        self.trouble: Exception | None = None
        self.granting = asyncio.Event()
        self.granting.set()
        self.hearers: list[Callable[[str], None]] = []
        self._listeners: list[Callable[[list[Any]], None]] = []

    @property
    def running(self) -> bool:
        return not self.stopped

    @property
    def laser(self) -> Any:
        if self.stopped:
            raise DeskError("This desk has stopped: start another.")
        if self.trouble:
            raise self.trouble
        return SimpleNamespace(topic=lambda name: SimpleNamespace(replay=lambda: Cursor(self.positions)))

    def events(self, incident: str | None = None) -> list[dict[str, Any]]:
        return [row for row in self.rows if incident is None or row.get("incident") == incident]

    def listen(self, callback: Callable[[list[Any]], None]) -> None:
        self._listeners.append(callback)

    def hear(self, callback: Callable[[str], None]) -> None:
        self.hearers.append(callback)

    def happen(self, *events: dict[str, Any]) -> None:
        """Write events and tell whoever listens."""
        self.rows += events
        for callback in self._listeners:
            callback(list(events))

    def drive(self, until: float) -> None:
        """Write Tuesday's reports up to a demo minute."""
        done = len(self.positions)
        self.positions += [r for r in records()["positions"] if r["minute"] <= until][done:]

    async def rounds(self) -> dict[str, Round]:
        return dict(self.round_of)

    async def stops(self) -> dict[str, dict[str, Any]]:
        return dict(self.state_of)

    def waiting(self) -> list[Prompt]:
        return self.prompts

    async def parked(self) -> dict[str, dict[str, Any]]:
        return self.letters

    async def incident(self, what: str, van: str = "") -> str:
        self.asked.append((what, van))
        return "tue-1"

    async def vans(self, count: int) -> str:
        self.asked.append(("vans", count))
        await self.granting.wait()
        return f"{count} vans on the road"

    async def approve(self, incident: str) -> None:
        self.asked.append(("approve", incident))

    async def decline(self, incident: str) -> None:
        self.asked.append(("decline", incident))

    async def fix_and_redrive(self) -> list[str]:
        self.asked.append(("redrive",))
        return []


def tuesday_events(until: float) -> list[dict[str, Any]]:
    """Tuesday's events up to a demo minute."""
    found = []
    for event in records()["events"]:
        if (event.get("minute") or 0.0) > until:
            break
        found.append(event)
    return found
