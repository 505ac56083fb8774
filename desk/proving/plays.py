"""What the desks are made to do while their processes are killed, and what must come of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from desk.control import fleet, support
from desk.delivery.incidents import FIVE, INCIDENTS, Planned
from desk.support.tickets import SCENARIOS

SUPPORT, DELIVERY = "support", "delivery"


@dataclass(frozen=True)
class Play:
    """One ticket from opening to quiet. answer: what the person says if asked; refunds, declined: how many of each."""

    name: str
    scenario: str
    answer: str
    issues: int
    refunds: int
    declined: int = 0
    desk: str = SUPPORT
    agents: Sequence[str] = support.AGENTS
    asks: str = "resolver"
    """Who asks a person."""


@dataclass(frozen=True)
class Day:
    """One delivery day, two vans, nobody watching: its planned incidents and how many customers order."""

    name: str
    incidents: tuple[Planned, ...] = ()
    orders: int = 0
    desk: str = DELIVERY
    agents: Sequence[str] = field(default=tuple(name for name in fleet.AGENTS if name != "simulator"))
    asks: str = "invoice"

    @property
    def disputes(self) -> int:
        """How many bills a person is asked about."""
        return sum(planned.what == "overbilled" for planned in self.incidents)


def _plays() -> tuple[Play, ...]:
    plays = [
        Play(s.name, s.name, "approve", s.issues, int(s.outcome == "refunded")) for s in SCENARIOS.values()
    ]
    return (*plays, Play("declined", "duplicate", "decline", 1, 0, 1))


def _days() -> tuple[Day, ...]:
    """Each incident alone (texts are only sent when something else happens), an order, and all of it to the end of
    the day, in which the simulator is killed too."""
    alone = [
        Day(what.replace("_", " "), (Planned(6.0, what),), orders=int(what == "sms_down"))
        for what in INCIDENTS
    ]
    return (*alone, Day("new order", orders=1), Day("whole day", FIVE, 1, agents=tuple(fleet.AGENTS)))


PLAYS = {play.name: play for play in _plays()}
DAYS = {day.name: day for day in _days()}
