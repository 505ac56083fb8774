"""What a lesson imports: start a desk, show its panels and its code, read the log, check an answer."""

from collections.abc import Sequence
from typing import Any

from IPython import get_ipython

from desk import panels as panel
from desk.analysis.bill import bill_beside, discrepancies
from desk.analysis.copies import shares, shares_plot
from desk.analysis.counting import counts
from desk.analysis.days import checks, plans_beside_solver
from desk.analysis.evals import evals
from desk.analysis.exception_story import story
from desk.analysis.incoming import incoming
from desk.analysis.journal import journal, sent, steps
from desk.analysis.kept import kept, offsets
from desk.analysis.letters import capsules, remembered, told
from desk.analysis.picture import Picture
from desk.analysis.recovery import recovery_chart
from desk.analysis.rivals import rivals_plot, rivals_table
from desk.analysis.rounds import beside, drops, rounds
from desk.analysis.sheet import Sheet
from desk.analysis.spending import latency_plot, spent
from desk.analysis.timeline import Timeline
from desk.analysis.turns import turns
from desk.control.errors import awaited
from desk.control.fleet import FleetDesk
from desk.course import magic, unawaited
from desk.course.examining import exam
from desk.course.exercises import check
from desk.course.fleets import answer_to, close_roads, refused, remember_again, rewind, squeeze_in
from desk.course.guard import guarded
from desk.course.outliving import freeze, outlived
from desk.course.serving import served
from desk.course.setup import set_up
from desk.course.source import show
from desk.course.starting import reset, start
from desk.course.versions import same_day, told_otherwise, versions
from desk.delivery.incidents import FIVE

__all__ = [
    "FIVE",
    "Sheet",
    "answer_to",
    "beside",
    "bill_beside",
    "capsules",
    "check",
    "checks",
    "close_roads",
    "counts",
    "discrepancies",
    "drops",
    "evals",
    "exam",
    "freeze",
    "incoming",
    "journal",
    "kept",
    "latency_plot",
    "most_hit",
    "offsets",
    "outlived",
    "panel",
    "plans_beside_solver",
    "recovery_plot",
    "refused",
    "remember_again",
    "remembered",
    "reset",
    "rewind",
    "rivals_plot",
    "rivals_table",
    "rounds",
    "same_day",
    "sent",
    "served",
    "set_up",
    "shares",
    "shares_plot",
    "show",
    "spent",
    "squeeze_in",
    "start",
    "steps",
    "timeline",
    "told",
    "told_otherwise",
    "turns",
    "versions",
]

# A lesson has %%agent from its first cell on, and a word for a forgotten await.
for each in (magic, unawaited):
    each.install(get_ipython())


def timeline(desk: Any, of: str) -> Timeline:
    """What happened to a ticket or an exception, from the log alone. Shown as a table; `.plot()` draws it."""
    events = awaited(desk).events()
    return story(events, of) if isinstance(desk, FleetDesk) else Timeline.of(events, awaited(of))


def most_hit(desk: Any, tickets: Sequence[str]) -> str:
    """The ticket that most deaths hit; the first of them if several were hit as often."""
    return max(tickets, key=lambda ticket: timeline(desk, ticket).deaths)


def recovery_plot(desk: Any) -> Picture:
    """Every death so far, and how long until things went on."""
    return recovery_chart(desk.events())


# What a learner calls looks at what it is given: the rooms these come from trust their callers.
globals().update(
    {
        work.__name__: guarded(work)
        for work in (
            answer_to, beside, bill_beside, capsules, checks, close_roads, counts, discrepancies, drops, evals, exam,
            freeze, incoming, journal, kept, latency_plot, most_hit, offsets, outlived, plans_beside_solver,
            recovery_plot, refused, remember_again, remembered, rewind, rounds, same_day, sent, served, shares, shares_plot, spent,
            squeeze_in, steps, timeline, told, told_otherwise, turns, versions,
        )
    }
)  # fmt: skip
