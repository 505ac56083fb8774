"""The rounds a day starts with: a slice of the compass for each van, the six nearest stops of it, nearest first."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import atan2, cos, radians, tau

from desk.delivery.planning.round import DEPOT, Metres, Round, nearest_first

DROPS = 6
Point = tuple[float, float]  # (lon, lat) degrees


def bearing(start: Point, end: Point) -> float:
    """Compass bearing in radians, clockwise from north, 0 to tau. Exact enough within a city."""
    east = (end[0] - start[0]) * cos(radians(start[1]))
    return atan2(east, end[1] - start[1]) % tau


def slices(depot: Point, stops: Mapping[str, Point], vans: int) -> list[list[str]]:
    """The stops sorted by bearing and cut into one slice a van; sizes differ by one at most."""
    ordered = sorted(stops, key=lambda stop: (bearing(depot, stops[stop]), stop))
    size, larger = divmod(len(ordered), vans)
    cuts = [i * size + min(i, larger) for i in range(vans + 1)]
    return [ordered[a:b] for a, b in pairwise(cuts)]


def start_rounds(
    depot: Point, stops: Mapping[str, Point], vans: Sequence[str], metres: Metres
) -> tuple[dict[str, Round], tuple[str, ...]]:
    """Each van's first round, and the stops left over: the customers who may order during the day."""
    rounds, left = {}, []
    for van, stops_of_slice in zip(vans, slices(depot, stops, len(vans)), strict=True):
        by_distance = sorted(stops_of_slice, key=lambda stop: (metres(DEPOT, stop), stop))
        rounds[van] = Round(van, drops=nearest_first(DEPOT, by_distance[:DROPS], metres))
        left += by_distance[DROPS:]
    return rounds, tuple(sorted(left))
