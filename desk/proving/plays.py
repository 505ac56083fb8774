"""What the desks are made to do while their processes are killed, and what must come of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from desk.control import fleet, support
from desk.delivery.incidents import FIVE, INCIDENTS, Planned
from desk.support.tickets import SCENARIOS

SUPPORT, DELIVERY = "support", "delivery"


@dataclass(frozen=True)
class Answer:
    """What a person says to the question about an issue of the ticket, or about the bill."""

    ok: bool
    by: str = "person"
    issue: int = 1


YES, NO = Answer(True), Answer(False)
LATE_YES, LATE_NO = Answer(True, "manager"), Answer(False, "manager")
ASKED, SAID, CLAIMED, WORDED, DECIDED = "asked", "said", "claimed", "worded", "decided"
"""From where on a play is tried that is another one up to there: a person knows of the question; the first answer is
given; a charge is claimed the last time; the last words for a customer are there; what is decided was asked.
"""


class _Played:
    """What plays and days have in common."""

    answers: tuple[Answer, ...]
    llm: str
    """Who writes, see `stage`."""
    since: str
    """From where on its points are tried; empty: from the beginning."""
    meets: tuple[str, ...]
    """Who writes one key at once in it, sooner or later; such a play is only for that."""
    meets_at: str
    """Which key, where chance decides about others; else every one that both write."""


@dataclass(frozen=True)
class Play(_Played):
    """One ticket from opening to quiet. scenario: its name, or a customer's words; answers: what is said if asked,
    in this order; refunds, declined: how many of each come of that; then: the words of another ticket, opened when the
    first has been asked about and before it is answered.
    """

    name: str
    scenario: str
    issues: int
    refunds: int
    declined: int = 0
    then: str = ""
    llm: str = "mock"
    answers: tuple[Answer, ...] = (YES,)
    since: str = ""
    meets: tuple[str, ...] = ()
    meets_at: str = ""
    desk: str = SUPPORT
    agents: Sequence[str] = support.AGENTS
    asks: str = "resolver"
    """Who asks a person."""

    @property
    def tickets(self) -> int:
        """How many are opened."""
        return 2 if self.then else 1


@dataclass(frozen=True)
class Day(_Played):
    """One delivery day: its planned incidents, how many customers order, how many vans there are, how fast the clock
    runs. At "max" nobody watches, and the day is the same each time; else several things may happen at once. within: so
    many seconds a person has to answer, and answers when it is too late; 0: as many as it takes.
    """

    name: str
    incidents: tuple[Planned, ...] = ()
    orders: int = 0
    vans: int = 2
    speed: str = "max"
    within: float = 0.0
    llm: str = "mock"
    answers: tuple[Answer, ...] = (YES,)
    since: str = ""
    meets: tuple[str, ...] = ()
    meets_at: str = ""
    desk: str = DELIVERY
    agents: Sequence[str] = field(default=tuple(name for name in fleet.AGENTS if name != "simulator"))
    asks: str = "invoice"

    @property
    def disputes(self) -> int:
        """How many bills a person is asked about."""
        return sum(planned.what == "overbilled" for planned in self.incidents)


_TWO_REFUNDS = (
    "Order 1043 was charged twice, please refund one. Order 1053 was charged three times, please refund it."
)
_CHARGED = "Order 1043 was charged twice, please refund one."


def _plays() -> tuple[Play, ...]:
    """Each scenario, a refund declined, one declined after it was approved, and one ended by the resolver while
    billing ends another of the same ticket. One charge in two tickets; a writer who never writes the same."""
    plays = [Play(s.name, s.name, s.issues, int(s.outcome == "refunded")) for s in SCENARIOS.values()]
    return (
        *plays,
        Play("declined", "duplicate", 1, 0, 1, answers=(NO,)),
        Play(
            "answered again", "duplicate", 1, 1,
            answers=(YES, LATE_NO), since=SAID, agents=("resolver",),
        ),
        Play("claimed twice", _CHARGED, 2, 1, then=_CHARGED, since=CLAIMED, agents=("resolver",)),
        Play("other words", "duplicate", 1, 1, llm="claude", since=WORDED, agents=("billing",)),
        Play(
            "two refunds", _TWO_REFUNDS, 2, 1, 1,
            answers=(YES, replace(NO, issue=2)), meets=("billing", "resolver"),
        ),
    )  # fmt: skip


def _days() -> tuple[Day, ...]:
    """Each incident alone (texts are only sent when something else happens), an order, and all of it to the end of
    the day, in which the simulator is killed too. A writer who never writes the same. A bill answered again, one declined, one approved after that, one
    answered when it is too late. Two vans that stop in one minute, for a third to take over from both; the only two, of which one must stay."""
    alone = [
        Day(what.replace("_", " "), (Planned(6.0, what),), orders=int(what == "sms_down"))
        for what in INCIDENTS
    ]
    billed, invoice = (Planned(6.0, "overbilled"),), ("invoice",)
    at_once = tuple(Planned(0.5, "unreachable", van) for van in ("van-1", "van-2"))
    return (
        *alone,
        Day("new order", orders=1),
        Day("whole day", FIVE, 1, agents=tuple(fleet.AGENTS)),
        Day(
            "closure, other words",
            (Planned(6.0, "closure"),),
            llm="claude",
            since=WORDED,
            agents=("customer",),
        ),
        Day("bill answered again", billed, answers=(YES, LATE_NO), since=SAID, agents=invoice),
        Day("bill declined", billed, answers=(NO,), since=ASKED, agents=invoice),
        Day("bill declined, then approved", billed, answers=(NO, LATE_YES), since=SAID, agents=invoice),
        Day("bill answered too late", billed, within=1.0, answers=(YES,), since=DECIDED, agents=invoice),
        Day("two vans stop", at_once, vans=3, speed="200", meets=("routing-1", "routing-2")),
        Day(
            "both vans stop",
            at_once,
            speed="200",
            meets=("routing-1", "routing-2"),
            meets_at="cursors roster",
        ),
    )


PLAYS = {play.name: play for play in _plays()}
DAYS = {day.name: day for day in _days()}
