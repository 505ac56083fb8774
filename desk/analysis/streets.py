"""The streets the vans can use, as lines for a background: what the legs have in common, each piece once."""

from functools import cache
from itertools import pairwise

from desk.delivery.roads import Place, Point, Roads, load_places


@cache
def places() -> dict[str, Place]:
    """The depot and the stops, read once."""
    return load_places()


@cache
def roads() -> Roads:
    """The shapes of the legs, read once."""
    return Roads()


@cache
def streets() -> tuple[tuple[Point, ...], ...]:
    """Every piece of street once, joined into lines of (lon, lat) degrees."""
    left: dict[Point, set[Point]] = {}
    for a in places():
        for b in places():
            for u, v in pairwise(roads().path(a, b)) if a != b else ():
                if u != v:
                    left.setdefault(u, set()).add(v)
                    left.setdefault(v, set()).add(u)
    lines = []
    for start in sorted(left, key=lambda p: (len(left[p]) == 2, p)):  # dead ends and crossings first
        while left[start]:
            lines.append(tuple(_walk(left, start)))
    return tuple(lines)


def _walk(left: dict[Point, set[Point]], start: Point) -> list[Point]:
    """Take pieces away from `start` on, as far as the line goes without a crossing."""
    line = [start]
    while left[line[-1]]:
        here = line[-1]
        there = min(left[here])
        left[here].discard(there)
        left[there].discard(here)
        line.append(there)
        if len(left[there]) != 1:
            break
    return line
