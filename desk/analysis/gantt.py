"""The agents' steps as a gantt: one lane an agent, drawn from events alone.

A bar is a step in an agent's hands, a hatched bar a hold, a black cross a death, an open ring a replay, a diamond a
person's decision. Bars lie where they were in real time, since steps take none on the demo clock of an unwatched day;
what is written below is the demo clock.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from desk.analysis.palette import INK, SOFT, colour_of
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.spans import DEATHS, PERSON, Event, Span, Spans, spans
from desk.delivery.clock import time_of_day

LANES = ("dispatch", "routing-1", "routing-2", "customer", "invoice", "simulator", PERSON)
_HEIGHT = 0.5
_THINNEST = 0.004
"""Of the day's width: a step of a few milliseconds must still be seen."""
_TICKS = 9


def gantt(events: Sequence[Event]) -> Picture:
    """The chart of a day's events (log order, each once)."""
    found = spans(events)
    busy = {s.agent for s in found.steps} | {m.agent for m in found.marks}
    lanes = [lane for lane in LANES if lane in busy or lane in ("routing-1", "routing-2", "customer")]
    figure, axes = canvas(12, 1.5 + 0.62 * len(lanes))
    width = max(found.length, 0.1)
    for row, lane in enumerate(lanes):
        axes.axhline(-row, color=SOFT, linewidth=0.8, zorder=1)
        _bars(axes, -row, [s for s in found.steps if s.agent == lane], width, hatched=False)
        _bars(axes, -row, [s for s in found.holds if s.agent == lane], width, hatched=True)
        for mark in found.marks:
            if mark.agent == lane:
                _mark(axes, -row, mark.kind, mark.at, lane)
    axes.set_yticks([-row for row in range(len(lanes))], lanes)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(-0.01 * width, 1.01 * width)
    axes.set_ylim(-len(lanes) + 0.4, 0.75)
    axes.set_xticks(*_clock_ticks(found))
    axes.set_xlabel("real time (the labels are what the demo clock said then)", fontsize=9)
    return captioned(figure, _caption(found))


def _bars(axes: Axes, y: float, steps: Sequence[Span], width: float, *, hatched: bool) -> None:
    for s in steps:
        long = max(s.finish - s.begin, _THINNEST * width)
        colour = colour_of(s.agent)
        style: dict[str, Any] = (
            {"color": "white", "edgecolor": colour, "hatch": "/////", "zorder": 3}
            if hatched
            else {"color": colour, "edgecolor": "white", "linewidth": 0.6, "zorder": 2}
        )
        axes.barh(y, long, left=s.begin, height=_HEIGHT * (0.62 if hatched else 1), **style)


def _mark(axes: Axes, y: float, kind: str, at: float, agent: str) -> None:
    if kind in DEATHS:
        axes.plot(at, y, marker="x", color=INK, markersize=11, markeredgewidth=2.8, zorder=6)
    elif kind == "replay":
        axes.plot(
            at, y, marker="o", markersize=12, markerfacecolor="white", markeredgecolor=colour_of(agent),
            markeredgewidth=2.5, zorder=5,
        )  # fmt: skip
    else:
        axes.plot(at, y, marker="D", color=colour_of(agent), markersize=8, zorder=5)
    if kind not in DEATHS:
        axes.annotate(kind, (at, y), xytext=(0, 17), textcoords="offset points", fontsize=8.5, ha="center")


def _clock_ticks(found: Spans) -> tuple[list[float], list[str]]:
    """Equal steps of real time, each named by what the demo clock said then; a name stands once."""
    moments = [seconds for seconds, _ in found.clock]
    places, names = [], []
    for i in range(_TICKS):
        at = found.length * i / (_TICKS - 1)
        here = min(bisect_left(moments, at), len(moments) - 1)
        name = time_of_day(found.clock[here][1]) if moments else ""
        if name not in names:
            places.append(at)
            names.append(name)
    return places, names


def _caption(found: Spans) -> str:
    if not any(m.kind in DEATHS for m in found.marks):
        return "Who had which step in hand, and when. Nobody died."
    return "A cross is a death. A ring is a saved plan that the next process found and applied."
