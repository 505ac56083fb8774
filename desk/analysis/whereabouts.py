"""Where every van was, on the streets: trails up to a minute, and each stop by its state."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import cos, dist, radians
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from desk.analysis.frames import Frame, Spot
from desk.analysis.palette import GREY, INK, colour_of_van, ink_on
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.streets import places, roads, streets
from desk.delivery.clock import time_of_day
from desk.delivery.roads import DEPOT, Point
from desk.wording import counted

STOPS = {
    "delivered": ("o", INK, INK),
    "failed": ("X", "white", INK),
    "returned": ("v", "white", INK),
    "ordered": ("o", "white", INK),
    "": ("o", "#D9D9D9", "#D9D9D9"),
}
"""State of a stop -> marker, face, edge. Not by colour: colours are the vans'."""
OFF = ("stopped", "parked")
"""What a van does that is kept from driving."""
_HIGH = 8.2  # inches
_DISC = 23.0  # points from one van to the next where they stand side by side
_ABREAST = 4
_MARGIN = 0.004  # degrees around the places


def whereabouts(frames: Sequence[Frame], minute: int | None = None) -> Picture:
    """The map at the end of a demo minute, the last one unless given; it has a frame."""
    frame = frames[-1 if minute is None else minute]
    figure, axes = canvas(*map_size())
    ground(axes)
    for van in frame.vans:
        path = trail(frames[: frame.minute + 1], van)
        axes.plot(*zip(*path, strict=True), color=colour_of_van(van), linewidth=2.4, alpha=0.75, zorder=3)
    for state in STOPS:
        mark_stops(axes, frame, state)
    mark_vans(axes, frame)
    made, failed = sum(frame.delivered.values()), sum(frame.failed.values())
    when = "The end of the day" if minute is None else time_of_day(frame.minute)
    words = f"{when}: {counted(made, 'drop')} made (black)" + (f", {failed} failed" if failed else "")
    words += " (crossed)" if "failed" in frame.stops.values() else ""
    words += "; rings have ordered today" if "ordered" in frame.stops.values() else ""
    return captioned(figure, f"{words}.", spoken(frame))


def spoken(frame: Frame) -> str:
    """What the map shows: each van, what it does, where, and what it has made."""
    parts = []
    for van, spot in sorted(frame.vans.items()):
        there = (
            "at the depot"
            if spot.at == DEPOT and not spot.to
            else f"in {places()[spot.to or spot.at].suburb}"
        )
        where = f"on its way to {places()[spot.to].suburb}" if spot.status == "driving" and spot.to else there
        doing = "making a drop" if spot.status == "making" else spot.status
        parts.append(f"{van}: {doing} {where}, {counted(frame.delivered.get(van, 0), 'drop')} made")
    return f"A map of streets with {counted(len(parts), 'van')}. {'; '.join(parts)}."


def map_size() -> tuple[float, float]:
    """Inches of a map that keeps the city's shape."""
    west, east, south, north = bounds()
    return _HIGH * (east - west) * cos(radians((south + north) / 2)) / (north - south), _HIGH


def bounds() -> tuple[float, float, float, float]:
    """West, east, south and north of all places, with a margin. Degrees."""
    lons, lats = [p.lon for p in places().values()], [p.lat for p in places().values()]
    return min(lons) - _MARGIN, max(lons) + _MARGIN, min(lats) - _MARGIN, max(lats) + _MARGIN


def ground(axes: Axes) -> None:
    """The streets, the depot, and nothing around them."""
    west, east, south, north = bounds()
    axes.add_collection(LineCollection(list(streets()), colors="#CFCFCF", linewidths=0.9, zorder=1))
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    axes.set_aspect(1 / cos(radians((south + north) / 2)))
    axes.set_axis_off()
    depot = places()[DEPOT]
    axes.plot(depot.lon, depot.lat, marker="s", color=INK, markersize=9, zorder=4)
    axes.annotate(
        "depot", (depot.lon, depot.lat), xytext=(-14, 4), textcoords="offset points", ha="right", zorder=4
    )
    axes.text(
        1, 0, f"Roads {roads().attribution}", transform=axes.transAxes, ha="right", fontsize=7, color=GREY
    )


def trail(frames: Sequence[Frame], van: str) -> list[Point]:
    """The road a van has driven: the legs between the places it reached, and the piece of the leg it is on."""
    path: list[Point] = []
    at = to = ""
    spot = None
    for frame in frames:
        spot = frame.vans.get(van)
        if spot is None:
            continue
        if at and spot.at != at:
            path += roads().path(at, spot.at)
        to = (
            spot.to if spot.at != at or spot.to else to
        )  # who stands still was driving to where it drove before
        at = spot.at
    if spot is None:
        return path
    if spot.status in ("driving", "stopped", "parked") and to not in ("", at):
        path += piece(roads().path(at, to), (spot.lon, spot.lat))
    return [*path, (spot.lon, spot.lat)]


def piece(path: Sequence[Point], here: Point) -> Sequence[Point]:
    """The points of a path that lie before this point of it."""
    off = [beside(u, v, here) for u, v in pairwise(path)]
    return path[: off.index(min(off)) + 1] if off else path


def beside(u: Point, v: Point, here: Point) -> float:
    """How far a point is from a straight piece of road: how much longer the way over it is. Degrees."""
    return dist(u, here) + dist(here, v) - dist(u, v)


def mark_stops(axes: Axes, frame: Frame, state: str) -> None:
    """Every stop that is in this state ("" for nothing has happened there)."""
    marker, face, edge = STOPS[state]
    there = [p for p in places().values() if p.id != DEPOT and frame.stops.get(p.id, "") == state]
    axes.plot(
        [p.lon for p in there], [p.lat for p in there], linestyle="", marker=marker, markersize=6.5,
        markerfacecolor=face, markeredgecolor=edge, markeredgewidth=1.2, zorder=4,
    )  # fmt: skip


class Stand(NamedTuple):
    """How many discs to the right of its place, and below it, a van is drawn, and the word that stands beside it."""

    right: int
    down: int
    word: str


def side_by_side(vans: Mapping[str, tuple[Point, str]]) -> dict[str, Stand]:
    """Where each van (its place, its status) is drawn: (0, 0) for the first one there.

    What keeps vans from driving is said once a row, behind its last, and such a row holds no others.
    """
    rows: dict[tuple[Point, str], list[str]] = {}
    for van, (point, status) in vans.items():
        rows.setdefault((point, status if status in OFF else ""), []).append(van)
    found: dict[str, Stand] = {}
    above: Counter[Point] = Counter()
    for (point, word), here in sorted(rows.items(), key=lambda row: row[0][1]):
        for row in (here[first : first + _ABREAST] for first in range(0, len(here), _ABREAST)):
            for right, van in enumerate(row):
                found[van] = Stand(right, above[point], word if van == row[-1] else "")
            above[point] += 1
    return found


def mark_vans(axes: Axes, frame: Frame) -> None:
    """Every van; those at one place beside each other."""
    for van, stand in side_by_side(spots(frame)).items():
        _mark_van(axes, van, frame.vans[van], stand)


def spots(frame: Frame) -> dict[str, tuple[Point, str]]:
    """Where each van was, and what it did."""
    return {van: ((spot.lon, spot.lat), spot.status) for van, spot in frame.vans.items()}


def _mark_van(axes: Axes, van: str, spot: Spot, stand: Stand) -> None:
    """A van by its number; one that is kept from driving has a grey edge."""
    aside = (stand.right * _DISC, -stand.down * _DISC)
    axes.annotate(
        van.rpartition("-")[2], (spot.lon, spot.lat), xytext=aside, textcoords="offset points", ha="center",
        va="center", color=ink_on(colour_of_van(van)),
        fontsize=12, fontweight="bold", zorder=7,
        bbox={"boxstyle": "circle,pad=0.28", "facecolor": colour_of_van(van), "edgecolor": GREY if spot.status in OFF else "white",
              "linewidth": 1.5},
    )  # fmt: skip
    if stand.word:
        axes.annotate(
            stand.word, (spot.lon, spot.lat), xytext=(aside[0] + 14, aside[1] - 4), textcoords="offset points", fontsize=10,
            fontweight="bold", zorder=7,
        )  # fmt: skip
