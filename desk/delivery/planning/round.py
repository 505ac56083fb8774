"""A van's round: where it is, what it still has to deliver, in which order."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from desk.delivery.clock import MINUTES_PER_DROP, MINUTES_PER_METRE

Metres = Callable[[str, str], float]
DEPOT = "depot"


@dataclass(frozen=True)
class Round:
    """One van's round, as KV keeps it.

    `at` is the place the van reached last (while it makes a drop: that stop). `drops` are the stops still to make,
    in order. `heading` is the drop it is on its way to or making; `serving` says it is there and must be left alone.
    `retry` holds parcels that failed and are not yet planned again, `back` those that go back to the depot, `handed`
    what a parked van gave up. `applied` names the exceptions and orders whose change is already in here.
    """

    van: str
    at: str = DEPOT
    drops: tuple[str, ...] = ()
    heading: str = ""
    serving: bool = False
    parked: bool = False
    retry: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    handed: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()

    @property
    def in_service(self) -> tuple[str, ...]:
        """The drop being made now, which no plan may move; empty between drops."""
        return (self.heading,) if self.serving else ()

    @property
    def open_drops(self) -> tuple[str, ...]:
        """The drops a plan may move."""
        return tuple(stop for stop in self.drops if stop not in self.in_service)

    def with_order(self, order: Iterable[str]) -> "Round":
        """The same round with its open drops in this order; a drop in service stays first.

        The drop a van is driving to is given up when it no longer comes first.
        """
        drops = (*self.in_service, *order)
        heading = self.heading if drops and drops[0] == self.heading else ""
        return replace(self, drops=drops, heading=heading)

    def to_json(self) -> dict[str, Any]:
        """Plain values for KV."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Round":
        """What `to_json` gave, also after a trip through JSON."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
        return cls(**fields)


def length(start: str, drops: Iterable[str], metres: Metres) -> float:
    """Metres from start through the drops in order and back to the depot."""
    total, here = 0.0, start
    for stop in (*drops, DEPOT):
        total, here = total + metres(here, stop), stop
    return total


def nearest_first(start: str, stops: Iterable[str], metres: Metres) -> tuple[str, ...]:
    """The stops in the order of always going to the nearest one next; equals in the order of their names."""
    left, order, here = sorted(stops), [], start
    while left:
        here = min(left, key=lambda stop: metres(here, stop))
        left.remove(here)
        order.append(here)
    return tuple(order)


def arrivals(round_: Round, minute: float, metres: Metres) -> dict[str, float]:
    """When each open drop is reached, in demo minutes: 3 a kilometre, 4 at each drop.

    Reckoned from the place reached last, so a van already on its way comes a little earlier.
    """
    when = minute + MINUTES_PER_DROP * len(round_.in_service)
    here, found = round_.at, {}
    for stop in round_.open_drops:
        when += metres(here, stop) * MINUTES_PER_METRE
        found[stop] = when
        when, here = when + MINUTES_PER_DROP, stop
    return found
