"""The timeline as a chart: one lane per process, drawn from events alone.

A black cross is a death, an open ring a replay, a hatched bar a hold, a diamond a person's decision. Most of a
ticket happens within milliseconds of each other and the rest of the time somebody waits, so the time axis is
stretched: equal steps between events, longer where more time went by, the true seconds written underneath.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes

from desk.analysis.palette import INK, SOFT, colour_of
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.story import DEATHS, DECISIONS, Event
from desk.wording import counted

_INCHES_A_STEP = 0.5
_INCHES_A_LANE = 0.85
_QUIET = frozenset({"agent_up"})
"""Drawn as a tick, since a start is not work on the ticket."""


@dataclass(frozen=True)
class Lane:
    """One process (agent and pid) and where its events lie on the stretched axis."""

    agent: str
    label: str
    at: tuple[float, ...]
    events: tuple[Event, ...]


def stretched(seconds: Sequence[float]) -> list[float]:
    """Places for these moments (ascending seconds): at least one step apart, a little more where time passed."""
    places = [0.0] if seconds else []
    for before, now in pairwise(seconds):
        places.append(places[-1] + 1 + 1.2 * math.log10(1 + max(0.0, now - before) / 0.2))
    return places


def lanes_of(events: Sequence[Event]) -> tuple[list[Lane], list[float], list[float]]:
    """Lanes in the order they first appear, with each event's place and its seconds since the first event."""
    seconds = [e["at"] - events[0]["at"] for e in events]
    for i in range(1, len(seconds)):  # clocks of two processes may disagree by a millisecond: log order rules
        seconds[i] = max(seconds[i], seconds[i - 1])
    places = stretched(seconds)
    by_process: dict[tuple[str, int | None], list[tuple[float, Event]]] = {}
    for place, event in zip(places, events, strict=True):
        by_process.setdefault(_process(event), []).append((place, event))
    lanes: list[Lane] = []
    born: dict[str, int] = {}
    for (agent, _pid), items in by_process.items():
        born[agent] = born.get(agent, 0) + 1
        label = agent if born[agent] == 1 else f"{agent}, process {born[agent]}"
        lanes.append(Lane(agent, label, tuple(p for p, _ in items), tuple(e for _, e in items)))
    return lanes, places, seconds


def _process(event: Event) -> tuple[str, int | None]:
    if event["kind"] in DECISIONS or not event.get("agent"):
        return ("person", None)
    return (event["agent"], event.get("pid"))


def draw(name: str, events: Sequence[Event], thing: str = "ticket", unit: str = "ticket") -> Picture:
    """The chart of one thing's events (log order). `unit` is what a process has in its hands of it.

    An empty story is an empty chart that says so.
    """
    if not events:
        figure, axes = canvas(6, 1.2)
        axes.set_axis_off()
        return captioned(figure, f"Nothing about {name} is on the log yet.", "An empty chart.")
    lanes, places, seconds = lanes_of(events)
    figure, axes = canvas(2.2 + _INCHES_A_STEP * (places[-1] + 2), 1.3 + _INCHES_A_LANE * len(lanes))
    for row, lane in enumerate(lanes):
        _lane(axes, -row, lane)
    axes.set_yticks([-row for row in range(len(lanes))], [lane.label for lane in lanes])
    _rebirths(axes, lanes)
    ticks = [i for i in range(len(places)) if i == 0 or seconds[i] - seconds[i - 1] >= 0.005]
    axes.set_xticks([places[i] for i in ticks], [f"{seconds[i]:.2f}" for i in ticks], fontsize=8, rotation=60)
    axes.set_xlabel("seconds since the first event (quiet stretches shortened)", fontsize=9)
    axes.set_xlim(-0.7, places[-1] + 1.6)
    axes.set_ylim(-len(lanes) + 0.55, 0.85)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return captioned(figure, _caption(name, events, thing, unit), spoken(lanes, seconds))


def _lane(axes: Axes, y: float, lane: Lane) -> None:
    colour = colour_of(lane.agent)
    axes.plot([lane.at[0], lane.at[-1]], [y, y], color=SOFT, linewidth=1.2, zorder=1)
    for i, (x, event) in enumerate(zip(lane.at, lane.events, strict=True)):
        kind = event["kind"]
        if kind == "holding":
            end = lane.at[i + 1] if i + 1 < len(lane.at) else x + 0.8
            axes.barh(
                y, end - x, left=x, height=0.26, color="white", edgecolor=colour, hatch="////", zorder=2
            )
        elif kind in DEATHS:
            axes.plot(x, y, marker="x", color=INK, markersize=13, markeredgewidth=3, zorder=5)
        elif kind == "replay":
            axes.plot(
                x, y, marker="o", markersize=13, markerfacecolor="white", markeredgecolor=colour,
                markeredgewidth=2.5, zorder=5,
            )  # fmt: skip
        elif kind in DECISIONS:
            axes.plot(x, y, marker="D", color=colour, markersize=9, zorder=4)
        elif kind in _QUIET:
            axes.plot(x, y, marker="|", color=colour, markersize=13, markeredgewidth=2.5, zorder=4)
        else:
            axes.plot(x, y, marker="o", color=colour, markersize=6, zorder=4)
        weight = "bold" if kind in DEATHS or kind == "replay" else "normal"
        axes.annotate(
            kind.replace("_", " "), (x, y), xytext=(-2, 10), textcoords="offset points", rotation=38,
            fontsize=9, ha="left", va="bottom", rotation_mode="anchor", fontweight=weight, zorder=6,
        )  # fmt: skip


def _rebirths(axes: Axes, lanes: Sequence[Lane]) -> None:
    """A dotted line from a death to the first sign of the process that took over."""
    for row, lane in enumerate(lanes):
        if lane.events[-1]["kind"] not in DEATHS:
            continue
        for later, other in enumerate(lanes[row + 1 :], start=row + 1):
            if other.agent == lane.agent and other.at[0] > lane.at[-1]:
                axes.plot([lane.at[-1], other.at[0]], [-row, -later], ":", color=INK, linewidth=1.2, zorder=1)
                break


def spoken(lanes: Sequence[Lane], seconds: Sequence[float]) -> str:
    """What the chart shows: the lanes, how many events, and when there was a hold, a death, a replay, a decision."""
    moments = sorted({place for lane in lanes for place in lane.at})
    when = dict(zip(moments, seconds, strict=True))
    told = [
        (place, f"{event['kind'].replace('_', ' ')} in the lane of {lane.label} at {when[place]:.2f} s")
        for lane in lanes
        for place, event in zip(lane.at, lane.events, strict=True)
        if event["kind"] in {*DEATHS, *DECISIONS, "holding", "replay"}
    ]
    names = "; ".join(lane.label for lane in lanes)
    counts = f"{counted(len(lanes), 'lane')} from the top: {names}. {counted(len(moments), 'event')}"
    marks = "; ".join(words for _, words in sorted(told)) or "nobody died"
    return f"{counts} in {seconds[-1]:.2f} s: {marks}."


def _caption(name: str, events: Sequence[Event], thing: str, unit: str) -> str:
    deaths = sum(e["kind"] in DEATHS for e in events)
    replayed = any(e["kind"] == "replay" for e in events)
    if replayed and deaths == 1:
        return f"The cross and the ring are the same {unit} in two processes."
    if replayed:
        return f"Each cross is a death, each ring the same {unit} in the next process."
    if deaths:
        cross = "The cross" if deaths == 1 else "Each cross"
        return f"{cross} is a process that died with the {thing} in its hands."
    return f"{thing.capitalize()} {name} as it went from process to process."
