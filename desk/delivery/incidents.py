"""The five incidents a person can trigger, which of them a day has planned, and when customers order. Pure."""

import json
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from desk.delivery.planning.round import Round

TITLES: Mapping[str, str] = {
    "closure": "road closure",
    "unreachable": "driver unreachable",
    "nobody_home": "nobody home",
    "sms_down": "SMS gateway down",
    "overbilled": "overbilled invoice",
    "removed": "taken off the road",
}
INCIDENTS = ("closure", "unreachable", "nobody_home", "sms_down", "overbilled")
HALTING = ("closure", "unreachable", "removed")
"""Those for which a van must stop."""
ORDERS = 12
_FIRST_ORDER, _LAST_ORDER = 4.0, 55.0  # demo minutes between which customers order


@dataclass(frozen=True)
class Planned:
    """An incident of the day's own plan: its demo minute, one of INCIDENTS, and a van or "" for the busiest."""

    minute: float
    what: str
    van: str = ""


FIVE = (
    Planned(6.0, "closure"),
    Planned(12.0, "nobody_home"),
    Planned(18.0, "sms_down"),
    Planned(24.0, "unreachable"),
    Planned(30.0, "overbilled"),
)
"""One of each, for a day that shows them all."""


def to_text(planned: Iterable[Planned]) -> str:
    """For a switch; `from_text` is the way back."""
    return json.dumps([asdict(p) for p in planned])


def from_text(text: str | None) -> list[Planned]:
    """What `to_text` gave; nothing gives none."""
    return [Planned(**p) for p in json.loads(text or "[]")]


def orders(seed: int, stops: Sequence[str], number: int = ORDERS) -> list[tuple[float, str]]:
    """(demo minute, stop) of the customers who order during the day, earliest first. The same seed, the same day."""
    draw = random.Random(f"orders:{seed}")
    chosen = draw.sample(sorted(stops), min(number, len(stops)))
    return sorted((round(draw.uniform(_FIRST_ORDER, _LAST_ORDER), 1), stop) for stop in chosen)


def busiest(rounds: Iterable[Round]) -> str:
    """The van with the most drops to make, for an incident that names none; "" when no van is driving."""
    driving = [r for r in rounds if not r.parked]
    return min(driving, key=lambda r: (-len(r.drops), r.van)).van if driving else ""


def vans_to_change(
    wanted: int, driving: Iterable[str], leaving: Collection[str]
) -> tuple[list[str], list[str]]:
    """(vans to take off the road, vans to put on it) so that this many drive: the highest numbers go first, the
    lowest come back first. A van that is leaving has to hand over before it can come back.
    """
    staying = sorted(set(driving) - set(leaving))
    idle = [f"van-{n}" for n in range(1, 9) if f"van-{n}" not in (*staying, *leaving)]
    more = max(0, wanted - len(staying))
    return staying[wanted:][::-1], idle[:more]
