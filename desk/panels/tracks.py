"""What has to be drawn anew after some more position reports: only what changed. Pure, no widgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import dist
from typing import Any

from desk.analysis.streets import roads
from desk.analysis.whereabouts import beside, piece
from desk.delivery.roads import Point

_ON_THE_ROAD = 1e-5  # degrees, about a metre


@dataclass(frozen=True)
class Closure:
    """A road that was found closed: where the van stood, on its way from which place to which stop."""

    incident: str
    van: str
    here: Point
    at: str
    stop: str


@dataclass
class Changes:
    """Since the last time: vans that moved, vans that do something else now, legs completed, roads closed."""

    moved: dict[str, Point] = field(default_factory=dict)
    doing: dict[str, str] = field(default_factory=dict)
    legs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    closures: list[Closure] = field(default_factory=list)


class Tracks:
    """A fold of position reports. Points are (lon, lat) degrees."""

    def __init__(self) -> None:
        self.minute = 0.0
        self.where: dict[str, Point] = {}
        self.doing: dict[str, str] = {}
        self._at: dict[str, str] = {}
        self._to: dict[str, str] = {}
        self._from: dict[str, str] = {}

    def take(self, reports: Iterable[Mapping[str, Any]]) -> Changes:
        """Take in reports, in log order. A van that stands where it stood is not in the answer."""
        changes = Changes()
        before, did = dict(self.where), dict(self.doing)
        for report in reports:
            van, at = report["van"], report["at"]
            self.minute = max(self.minute, report["minute"])
            self.where[van], self.doing[van] = (report["lon"], report["lat"]), report["status"]
            self._to[van] = report["stop"]
            if self._at.setdefault(van, at) != at:
                changes.legs.setdefault(van, []).append((self._at[van], at))
                self._from[van], self._at[van] = self._at[van], at
            if report.get("why") == "closure" and report.get("stop"):
                changes.closures.append(Closure(report["incident"], van, self.where[van], at, report["stop"]))
        changes.moved = {van: point for van, point in self.where.items() if before.get(van) != point}
        changes.doing = {van: status for van, status in self.doing.items() if did.get(van) != status}
        return changes

    def road(self, van: str) -> Sequence[Point]:
        """The road a van is on, and before it the one it came by."""
        places = [self._from.get(van, ""), self._at[van], self._to[van]]
        return [point for a, b in pairwise(places) if a and b and a != b for point in roads().path(a, b)]


class Glide:
    """Where each van is shown. Reports come twice a second and a step is 120 m: a van is shown half of each step first,
    and all of it a beat later.
    """

    def __init__(self) -> None:
        self._shown: dict[str, Point] = {}
        self._due: dict[str, Point] = {}

    def beat(self, moved: Mapping[str, Point], tracks: Tracks) -> dict[str, Point]:
        """Where to put which vans now, `moved` being what the reports of this beat changed."""
        now = {**self._due}
        for van, point in moved.items():
            shown = self._shown.get(van)
            now[van] = point if shown is None else halfway(tracks.road(van), shown, point)
        self._due = {van: point for van, point in moved.items() if now[van] != point}
        self._shown |= now
        return now


def halfway(path: Sequence[Point], a: Point, b: Point) -> Point:
    """The middle of the way from a to b: along this path if both are on it, else as the crow flies."""
    way = [a, b]
    if len(path) > 1 and all(min(beside(u, v, p) for u, v in pairwise(path)) < _ON_THE_ROAD for p in (a, b)):
        way = [a, *piece(path, b)[len(piece(path, a)) :], b]
    left = sum(dist(u, v) for u, v in pairwise(way)) / 2
    for u, v in pairwise(way):
        long = dist(u, v)
        if left <= long and long:
            return u[0] + (v[0] - u[0]) * left / long, u[1] + (v[1] - u[1]) * left / long
        left -= long
    return b
