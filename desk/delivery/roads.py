"""The world as computed beforehand: 61 places, the legs between them, and the shapes of those legs.

Metres and seconds are in one small file, which routing reads; shapes are in another, which only drawing reads.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from math import cos, hypot, radians
from pathlib import Path

from desk.delivery import polyline

DATA = Path(__file__).parents[2] / "data" / "delivery"
DEPOT = "depot"
METRES_PER_DEGREE = 111_100.0

Point = tuple[float, float]  # (lon, lat) degrees


@dataclass(frozen=True)
class Place:
    """The depot or a customer's stop."""

    id: str
    customer: str
    name: str
    street: str
    suburb: str
    lon: float
    lat: float


@dataclass(frozen=True)
class Legs:
    """Metres and seconds of the road from every place to every other. Not symmetric: streets are one-way."""

    places: tuple[str, ...]
    table: Sequence[Sequence[float]]
    times: Sequence[Sequence[float]]

    @cached_property
    def _row(self) -> dict[str, int]:
        return {place: i for i, place in enumerate(self.places)}

    def metres(self, a: str, b: str) -> float:
        """Metres driven from a to b. KeyError for a place that does not exist."""
        return self.table[self._row[a]][self._row[b]]

    def seconds(self, a: str, b: str) -> float:
        """Seconds from a to b on an empty road at assumed speeds; plans use 3 minutes a kilometre instead."""
        return self.times[self._row[a]][self._row[b]]


def load_places(folder: Path = DATA) -> dict[str, Place]:
    """Every place by id; the depot comes first."""
    rows = json.loads((folder / "places.json").read_text(encoding="utf-8"))
    return {row["id"]: Place(**row) for row in rows}


def load_legs(folder: Path = DATA) -> Legs:
    """The small file."""
    rows = json.loads((folder / "legs.json").read_text(encoding="utf-8"))
    return Legs(tuple(rows["places"]), rows["metres"], rows["seconds"])


class Roads:
    """The shapes of the legs: where a van is when it has driven some metres of one."""

    def __init__(self, folder: Path = DATA) -> None:
        rows = json.loads((folder / "roads.json").read_text(encoding="utf-8"))
        self.attribution: str = rows["source"]
        self._shapes: list[list[str]] = rows["shapes"]
        self._row = {place: i for i, place in enumerate(rows["places"])}
        self.path = cache(self._path)

    def _path(self, a: str, b: str) -> list[Point]:
        """The (lon, lat) points of the road from a to b."""
        return polyline.decode(self._shapes[self._row[a]][self._row[b]])

    def point(self, a: str, b: str, share: float) -> Point:
        """Where one is after this share (0 to 1) of the road from a to b."""
        path = self.path(a, b)
        shrink = cos(radians(path[0][1]))
        lengths = [hypot((x - u) * shrink, y - v) for (u, v), (x, y) in pairwise(path)]
        left = min(max(share, 0.0), 1.0) * sum(lengths)
        for (u, v), (x, y), length in zip(path, path[1:], lengths, strict=False):
            if left <= length and length:
                return u + (x - u) * left / length, v + (y - v) * left / length
            left -= length
        return path[-1]


def straight_metres(a: Place, b: Place) -> float:
    """Metres as the crow flies, good to a part in a thousand over a city."""
    east = (b.lon - a.lon) * cos(radians((a.lat + b.lat) / 2))
    return hypot(east, b.lat - a.lat) * METRES_PER_DEGREE
