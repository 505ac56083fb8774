"""What a lesson imports: start a desk, show its panels and its code, read the log, check an answer."""

from collections.abc import Sequence
from typing import Any

from desk import panels as panel
from desk.analysis.counting import counts
from desk.analysis.kept import kept, offsets
from desk.analysis.picture import Picture
from desk.analysis.recovery import recovery_chart
from desk.analysis.timeline import Timeline
from desk.analysis.turns import turns
from desk.course.exercises import check
from desk.course.serving import served
from desk.course.setup import set_up
from desk.course.source import show
from desk.course.starting import start

__all__ = [
    "check",
    "counts",
    "kept",
    "most_hit",
    "offsets",
    "panel",
    "recovery_plot",
    "served",
    "set_up",
    "show",
    "start",
    "timeline",
    "turns",
]


def timeline(desk: Any, ticket: str) -> Timeline:
    """What happened to a ticket, from the log alone. Shown as a table; `.plot()` draws it."""
    return Timeline.of(desk.events(), ticket)


def most_hit(desk: Any, tickets: Sequence[str]) -> str:
    """The ticket that most deaths hit; the first of them if several were hit as often."""
    return max(tickets, key=lambda ticket: timeline(desk, ticket).deaths)


def recovery_plot(desk: Any) -> Picture:
    """Every death so far, and how long until things went on."""
    return recovery_chart(desk.events())
