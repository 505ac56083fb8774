"""The desk's questions to its views, asked again whenever the change feed says that a view has changed."""

from collections.abc import Awaitable, Callable, Iterable
from html import escape
from typing import Any

import laser_sdk as ls

from desk.delivery import readers
from desk.panels.follow import Beat
from desk.panels.frame import Line, Panel

BEAT = 0.5
"""Seconds between two looks at the change feed."""
_STOPPED = "This desk has stopped: these are its last answers."
_CSS = """<style>
.desk-readers { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); gap: 12px; }
.desk-readers code { display: block; font-size: 11px; line-height: 15px; white-space: pre-wrap; background: none;
  color: var(--jp-ui-font-color2); margin-bottom: 6px; }
.desk-readers code { overflow-wrap: anywhere; }
.desk-readers table { width: 100%; border-collapse: collapse; }
.desk-readers td { padding: 0 12px 0 0; border: 0; text-align: left; }
.desk-readers td.desk-number { padding: 0; text-align: right; }
</style>"""

Rows = list[tuple[Any, ...]]


async def _delivered(laser: ls.Laser) -> Rows:
    return sorted((await readers.delivered(laser)).items())


async def _failed(laser: ls.Laser) -> Rows:
    return sorted((await readers.failed(laser)).items())


async def _km(laser: ls.Laser) -> Rows:
    return [(van, f"{metres / 1000:.1f}") for van, metres in sorted((await readers.metres(laser)).items())]


async def _stopped(laser: ls.Laser) -> Rows:
    return [(van, stop or "on its way") for van, stop, _ in await readers.stops(laser, "stopped")]


async def _steps(laser: ls.Laser) -> Rows:
    return sorted((await readers.per_agent(laser, "step")).items())


async def _killed(laser: ls.Laser) -> Rows:
    return sorted((await readers.per_agent(laser, "killed")).items())


async def _replayed(laser: ls.Laser) -> Rows:
    return sorted((await readers.per_agent(laser, "replay")).items())


QUESTIONS: tuple[tuple[str, str, Callable[[ls.Laser], Awaitable[Rows]]], ...] = (
    ("Drops made", 'where_eq("kind", "delivered").count().group_by(["van"])', _delivered),
    ("Drops failed", 'where_eq("kind", "failed").count().group_by(["van"])', _failed),
    ("Kilometres", 'max("metres").group_by(["van"])', _km),
    ("Vans that have stopped", 'where_eq("kind", "stopped").count().group_by(["van", "stop"])', _stopped),
    ("Steps done", 'where_eq("kind", "step").count().group_by(["agent"])', _steps),
    ("Kills", 'where_eq("kind", "killed").count().group_by(["agent"])', _killed),
    ("Replays", 'where_eq("kind", "replay").count().group_by(["agent"])', _replayed),
)
"""Title, the query as it is built, and what asks it."""


class ReadersPanel(Panel):
    """Each question with its answer so far."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._answers = Line()
        self._feed: list[ls.WatchReader] = []
        super().__init__("Readers", [self._answers])
        still = "The answers are not kept up to date"
        self._task = Beat(desk, self._look, self.problem, every=BEAT, still=still, stopped=_STOPPED).task

    async def refresh(self) -> None:
        """Ask every question."""
        laser = self._desk.laser
        answers = [(title, query, await ask(laser)) for title, query, ask in QUESTIONS]
        self._answers.say(_CSS + tables(answers))

    async def _look(self) -> None:
        """Ask again if a view has changed."""
        laser = self._desk.laser
        self._feed = self._feed or [laser.watch(index=view) for view in ("fleet_events", "fleet_positions")]
        if [change for view in self._feed for change in await view.poll()] or not self._answers.value:
            await self.refresh()

    def __repr__(self) -> str:
        return "Readers"


def tables(answers: Iterable[tuple[str, str, Rows]]) -> str:
    """The answers as cards."""
    parts = []
    for title, query, rows in answers:
        body = "".join(
            f'<tr><td>{escape(str(key))}</td><td class="desk-number">{escape(str(value))}</td></tr>'
            for key, value in rows
        )
        body = body or '<tr><td class="desk-soft">none</td></tr>'
        parts.append(
            f'<div class="desk-card"><b>{escape(title)}</b><code>{escape(query)}</code><table>{body}</table></div>'
        )
    return f'<div class="desk-readers">{"".join(parts)}</div>'
