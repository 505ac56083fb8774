"""The agents' steps as a gantt: one lane an agent, drawn from events alone.

A bar is a step in an agent's hands, a hatched bar a hold, a black cross a death, an open ring a replay, a diamond a
person's decision. Bars lie where they were in real time, since steps take none on the demo clock of an unwatched day;
what is written below is the demo clock.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from desk.analysis.palette import INK, SOFT, colour_of
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.spans import DEATHS, PERSON, Event, Mark, Span, Spans, spans
from desk.delivery.clock import time_of_day
from desk.wording import counted

LANES = ("dispatch", "routing-1", "routing-2", "customer", "invoice", "simulator", "stack", PERSON)
_LANE = 0.62  # inches
_HEIGHT = 0.5  # of a bar, in lanes
_LINE = 0.27  # of a word, in lanes
_CLOSE = 0.075
"""Of the day's width: the widest word."""
_THINNEST = 0.004
"""Of the day's width: a step of a few milliseconds must still be seen."""
_TICKS = 9
_TIMES = 4  # moments that are named one by one


def gantt(events: Sequence[Event]) -> Picture:
    """The chart of a day's events (log order, each once)."""
    found = spans(events)
    busy = {s.agent for s in found.steps} | {m.agent for m in found.marks}
    lanes = [lane for lane in LANES if lane in busy or lane in ("routing-1", "routing-2", "customer")]
    width = max(found.length, 0.1)
    labels = {
        lane: together([m for m in found.marks if m.agent == lane and m.kind not in DEATHS], width)
        for lane in lanes
    }
    below = max((len(words) for _, words in labels.get(PERSON, ())), default=0) * _LINE
    figure, axes = canvas(12, 1.5 + _LANE * (len(lanes) + below))
    for row, lane in enumerate(lanes):
        axes.axhline(-row, color=SOFT, linewidth=0.8, zorder=1)
        _bars(axes, -row, [s for s in found.steps if s.agent == lane], width, hatched=False)
        _bars(axes, -row, [s for s in found.holds if s.agent == lane], width, hatched=True)
        for mark in found.marks:
            if mark.agent == lane:
                _mark(axes, -row, mark.kind, mark.at, lane)
        for at, words in labels[lane]:
            up = lane != PERSON  # the person's lane is the last: below it there is room for many words
            axes.annotate(
                "\n".join(words), (at, -row), xytext=(0, 12 if up else -9), textcoords="offset points",
                fontsize=8.5, ha="center", va="bottom" if up else "top",
            )  # fmt: skip
    axes.set_yticks([-row for row in range(len(lanes))], lanes)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(-0.01 * width, 1.01 * width)
    axes.set_ylim(-len(lanes) + 0.4 - below, 0.75)
    axes.set_xticks(*_clock_ticks(found))
    axes.set_xlabel("real time (the labels are what the demo clock said then)", fontsize=9)
    return captioned(figure, _caption(found), spoken(found, lanes))


def together(marks: Sequence[Mark], width: float) -> list[tuple[float, list[str]]]:
    """(place, words) of labels that do not lie on each other: what is named too close to the one before joins it.

    Marks in ascending order of time; a word that is there already is counted.
    """
    groups: list[list[Mark]] = []
    for mark in marks:
        if groups and mark.at - groups[-1][-1].at < _CLOSE * width:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [
        (
            sum(mark.at for mark in group) / len(group),
            [kind if n == 1 else f"{kind} ×{n}" for kind, n in Counter(mark.kind for mark in group).items()],
        )
        for group in groups
    ]


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


def _clock_ticks(found: Spans) -> tuple[list[float], list[str]]:
    """Equal steps of real time, each named by what the demo clock said then; a name stands once."""
    places, names = [], []
    for i in range(_TICKS):
        at = found.length * i / (_TICKS - 1)
        name = _clock_at(at, found)
        if name not in names:
            places.append(at)
            names.append(name)
    return places, names


def _clock_at(at: float, found: Spans) -> str:
    """What the demo clock said at this moment; "" where nothing says it."""
    here = min(bisect_left(found.clock, at, key=lambda told: told[0]), len(found.clock) - 1)
    return time_of_day(found.clock[here][1]) if found.clock else ""


def spoken(found: Spans, lanes: Sequence[str]) -> str:
    """What the chart shows: from the top, what is in each lane, and when."""
    parts = []
    for lane in lanes:
        marks = [mark for mark in found.marks if mark.agent == lane]
        kinds = dict.fromkeys(mark.kind for mark in marks)
        things = [
            counted(sum(s.agent == lane for s in found.steps), "step"),
            counted(sum(s.agent == lane for s in found.holds), "hold"),
            *(f"{kind} {_times([m.at for m in marks if m.kind == kind], found)}" for kind in kinds),
        ]
        parts.append(f"{lane}: {', '.join(thing for thing in things if not thing.startswith('0 '))}")
    return f"{counted(len(lanes), 'lane')} from the top. {'; '.join(parts)}."


def _times(moments: Sequence[float], found: Spans) -> str:
    """These moments as the demo clock told them; of many only how many, the first and the last."""
    told = [_clock_at(moment, found) for moment in moments]
    return (
        f"at {', '.join(told)}"
        if len(told) <= _TIMES
        else f"{counted(len(told), 'time')} from {told[0]} to {told[-1]}"
    )


def _caption(found: Spans) -> str:
    if not any(m.kind in DEATHS for m in found.marks):
        return "Who had which step in hand, and when. Nobody died."
    return "A cross is a death. A ring is a saved plan that the next process found and applied."
