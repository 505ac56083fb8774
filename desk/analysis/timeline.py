"""A ticket's timeline: a table to read as evidence (no pids, no clock times) and a plot with both."""

from dataclasses import dataclass

import pandas as pd

from desk.analysis.lanes import draw
from desk.analysis.picture import Picture
from desk.analysis.sheet import html
from desk.analysis.story import Event, plain


def who(event: Event) -> str:
    """Whose row this is: the agent, or the person at the desk."""
    return event.get("agent") or event.get("by") or "desk"


@dataclass(frozen=True)
class Timeline:
    """What happened to one ticket, in log order. Shown as a table; `.plot()` draws the same events."""

    ticket: str
    events: tuple[Event, ...]

    @property
    def table(self) -> pd.DataFrame:
        """One row an event: process, event (its kind), text. A death is a row like any other."""
        rows = [(who(e), e["kind"], plain(e.get("text"))) for e in self.events]
        return pd.DataFrame(rows, columns=["process", "event", "text"], index=range(1, len(rows) + 1))

    def plot(self) -> Picture:
        """Lanes per process: a black cross is a death, an open ring a replay, a hatched bar a hold."""
        return draw(self.ticket, self.events)

    def __repr__(self) -> str:
        return self.table.to_string(max_colwidth=90)

    def _repr_html_(self) -> str:
        return html(self.table)
