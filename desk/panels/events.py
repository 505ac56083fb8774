"""What happened on the delivery desk, newest first, filtered by agent, by what it was, and by exception."""

from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from desk.analysis.spans import DEATHS
from desk.analysis.timeline import marked
from desk.delivery.clock import time_of_day
from desk.panels.follow import Follow
from desk.panels.frame import Line, Panel, row
from desk.panels.style import name
from desk.wording import passed_over

_ROWS = 40
EVERY = "everything"
SORTS: Mapping[str, frozenset[str]] = {
    "problems": frozenset(("incident", "stopped", "failed", "exception", "closed", "parked", "retry", "moot")),
    "kills and recovery": frozenset(("killed", "died", "agent_up", "replay", "resume", "holding")),
    "steps": frozenset(("start", "checkpoint", "holding", "replay", "step")),
    "people": frozenset(("incident", "fixed", "redriven", "asked", "approved", "declined", "disputed", "paid", "quarantined", "reinstated")),
    "messages to customers": frozenset(("told",)),
    "vans": frozenset(("joined", "departed", "arrived", "delivered", "failed", "stopped", "van_parked")),
}  # fmt: skip
"""What one can ask to see -> the kinds of events it is."""
_QUIET = frozenset(("departed", "arrived", "granted", "wanted"))
"""Left out of everything: there are hundreds."""


class EventsPanel(Panel):
    """The events topic with three filters."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._agent, self._sort, self._incident = (
            self._choice("agent"), self._choice("what", SORTS), self._choice("exception"),
        )  # fmt: skip
        self._log = Line()
        super().__init__("Timeline", [row([self._agent, self._sort, self._incident]), self._log])
        self._follow = Follow(desk, self.refresh, self.problem)
        for choice in (self._agent, self._sort, self._incident):
            choice.observe(lambda _change: self._follow.soon(), "value")

    @staticmethod
    def _choice(label: str, options: Any = ()) -> widgets.Dropdown:
        return widgets.Dropdown(
            options=[EVERY, *options], description=label, layout=widgets.Layout(width="240px"),
            style={"description_width": "72px"},
        )  # fmt: skip

    async def refresh(self) -> None:
        """Show what the log says now."""
        events = self._desk.events()
        _offer(self._agent, sorted({e["agent"] for e in events if e.get("agent")}))
        _offer(self._incident, list(dict.fromkeys(e["incident"] for e in events if e.get("incident"))))
        wanted = [e for e in events if self._wanted(e)][-_ROWS:]
        note = passed_over(self._desk.log.foreign).capitalize()
        self._log.say(table(wanted[::-1]) + (f'<div class="desk-soft">{note}.</div>' if note else ""))

    def _wanted(self, event: Mapping[str, Any]) -> bool:
        kinds = SORTS.get(self._sort.value)
        return (
            (event["kind"] in kinds if kinds else event["kind"] not in _QUIET)
            and self._agent.value in (EVERY, event.get("agent"))
            and self._incident.value in (EVERY, event.get("incident"))
        )

    def __repr__(self) -> str:
        return "Timeline"


def _offer(choice: widgets.Dropdown, options: list[str]) -> None:
    """Offer these besides everything; what is chosen stays chosen."""
    if list(choice.options) != [EVERY, *options]:
        chosen = choice.value
        choice.options = [EVERY, *options]
        choice.value = chosen if chosen in choice.options else EVERY


def words(event: Mapping[str, Any]) -> str:
    """What happened; of a step, which one, unless the words say so."""
    text, step = event.get("text") or "", event.get("step") or ""
    return text if step in text else f"{step}: {text}"


def table(events: list[Mapping[str, Any]]) -> str:
    """These events as a panel shows them."""
    rows = []
    for event in events:
        minute, kind = event.get("minute"), event["kind"]
        when = time_of_day(minute) if minute is not None else ""
        rows.append(
            f'<tr class="{"death" if kind in DEATHS else escape(kind)}"><td class="desk-number">{when}</td>'
            f'<td class="who">{name(event.get("agent") or "")}</td><td class="kind">{marked(kind)}</td>'
            f'<td class="about">{escape(event.get("incident") or "")}</td><td>{escape(words(event))}</td></tr>'
        )
    return f'<table class="desk-log">{"".join(rows)}</table>'
