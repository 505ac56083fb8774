"""A ticket's timeline: a table to read as evidence (no pids, no clock times) and a plot with both."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import pandas as pd

from desk.analysis.lanes import draw
from desk.analysis.palette import colour_of
from desk.analysis.picture import Picture
from desk.analysis.sheet import Sheet
from desk.analysis.story import DEATHS, DECISIONS, Event, distinct, of_ticket, plain

MARKS = {**dict.fromkeys(DEATHS, "✕"), "replay": "○", **dict.fromkeys(DECISIONS, "◆")}
"""The same signs as in the chart."""


def who(event: Event) -> str:
    """Whose doing this was: the agent, or the person at the desk."""
    return "person" if event["kind"] in DECISIONS else event.get("agent") or event.get("by") or "person"


def coloured(agent: str) -> str:
    """An agent's name beside its colour, as HTML."""
    return f'<span style="color:{colour_of(agent)}">■</span> {escape(agent)}'


def marked(kind: str) -> str:
    """An event's kind with the sign it has in the chart, as HTML."""
    words = escape(kind.replace("_", " "))
    return f"<b>{MARKS[kind]} {words}</b>" if kind in MARKS else words


@dataclass(frozen=True)
class Timeline:
    """What happened to one ticket, in log order. Shown as a table; `.plot()` draws the same events."""

    ticket: str
    events: tuple[Event, ...]
    thing: ClassVar[str] = "ticket"
    unit: ClassVar[str] = "ticket"

    @classmethod
    def of(cls, events: Iterable[Event], ticket: str) -> "Timeline":
        """Fold a desk's events (log order, repeats and all) into one ticket's timeline."""
        return cls(ticket, tuple(distinct(of_ticket(events, ticket))))

    @property
    def deaths(self) -> int:
        """How many deaths hit the ticket."""
        return sum(event["kind"] in DEATHS for event in self.events)

    @property
    def table(self) -> pd.DataFrame:
        """One row an event: process, event (its kind), text. A death is a row like any other."""
        rows = [(who(e), e["kind"], plain(e.get("text"))) for e in self.events]
        return pd.DataFrame(rows, columns=["process", "event", "text"], index=range(1, len(rows) + 1))

    def plot(self) -> Picture:
        """Lanes per process: a black cross is a death, an open ring a replay, a hatched bar a hold."""
        return draw(self.ticket, self.events, self.thing, self.unit)

    def _sheet(self) -> Sheet:
        return Sheet(self.table, {"process": coloured, "event": marked})

    def __repr__(self) -> str:
        return repr(self._sheet())

    def _repr_html_(self) -> str:
        return self._sheet()._repr_html_()
