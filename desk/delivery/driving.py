"""How a van moves in time: 3 demo minutes a kilometre, 4 at each drop. Pure, and exact between two ticks.

A van is described by what it has been doing since when; where it is at any minute follows from that. A van that has
to turn on its way drives back to the place it came from, the way it came.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from desk.delivery.clock import MINUTES_PER_DROP, MINUTES_PER_METRE
from desk.delivery.planning.round import DEPOT, Metres


@dataclass(frozen=True)
class Van:
    """What a van has been doing since a demo minute.

    `doing` is idle, driving, making (a drop), stopped or parked. `at` is the place it reached last and `to` the one it
    drives to. `off` and `back`: it has left `at` towards `off` and is `back` metres along, which it drives back first.
    `metres` is its odometer at `since`. `why` and `incidents`: what it stands still for.
    """

    name: str
    doing: str = "idle"
    at: str = DEPOT
    to: str = ""
    off: str = ""
    back: float = 0.0
    since: float = 0.0
    metres: float = 0.0
    why: str = ""
    incidents: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the event that made it so."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Van":
        """What `to_json` gave, also after a trip through JSON."""
        return cls(**{**value, "incidents": tuple(value["incidents"])})


def due(van: Van, metres: Metres) -> float:
    """The minute at which it reaches its place or has made its drop; infinity when it waits."""
    if van.doing == "driving":
        return van.since + (van.back + metres(van.at, van.to)) * MINUTES_PER_METRE
    return van.since + MINUTES_PER_DROP if van.doing == "making" else inf


def driven(van: Van, minute: float, metres: Metres) -> float:
    """Metres it drove since `since`."""
    if van.doing != "driving":
        return 0.0
    return min((minute - van.since) / MINUTES_PER_METRE, van.back + metres(van.at, van.to))


def odometer(van: Van, minute: float, metres: Metres) -> float:
    """Metres it drove since the day began."""
    return van.metres + driven(van, minute, metres)


def _standing(van: Van, minute: float, metres: Metres) -> tuple[str, float]:
    """The leg it is on, by its end, and how far along: ("", 0.0) at a place."""
    done = driven(van, minute, metres)
    if van.doing != "driving" or done < van.back:
        return (van.off, van.back - done) if van.back - done > 0 else ("", 0.0)
    return (van.to, done - van.back) if done > van.back else ("", 0.0)


def where(van: Van, minute: float, metres: Metres) -> tuple[str, str, float]:
    """The leg it is on and which share of it lies behind it: (from, to, 0 to 1). At a place: (place, place, 0)."""
    off, back = _standing(van, minute, metres)
    return (van.at, off, back / metres(van.at, off)) if off else (van.at, van.at, 0.0)


def _paused(van: Van, minute: float, metres: Metres) -> Van:
    off, back = _standing(van, minute, metres)
    return replace(van, to="", off=off, back=back, since=minute, metres=odometer(van, minute, metres))


def departed(van: Van, to: str, minute: float, metres: Metres) -> Van:
    """It drives to that place from now on, whatever it did before."""
    return replace(_paused(van, minute, metres), doing="driving", to=to, why="", incidents=())


def arrived(van: Van, minute: float, metres: Metres, *, to_a_drop: bool) -> Van:
    """It reached the place it drove to."""
    doing = "making" if to_a_drop else "idle"
    there = replace(_paused(van, minute, metres), doing=doing, at=van.to, off="", back=0.0)
    return replace(there, metres=van.metres + van.back + metres(van.at, van.to))


def finished(van: Van, minute: float) -> Van:
    """It has made its drop, or failed to."""
    return replace(van, doing="idle", since=minute)


def stopped(van: Van, why: str, incident: str, minute: float, metres: Metres) -> Van:
    """It stands still where it is until every one of its incidents is dealt with."""
    return replace(
        _paused(van, minute, metres), doing="stopped", why=why, incidents=(*van.incidents, incident)
    )


def parked(van: Van, minute: float) -> Van:
    """It is off the road, where it stands."""
    return replace(van, doing="parked", since=minute, incidents=())


def freed(van: Van, minute: float) -> Van:
    """It may drive again."""
    return replace(van, doing="idle", since=minute, why="", incidents=())
