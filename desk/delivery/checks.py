"""The checks at the end of a day: facts in, each claim with whether it holds and what was counted. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desk.delivery.carrier import Bill, Work, bill_for
from desk.delivery.rates import Rates, dollars
from desk.delivery.reconcile import explained, reconcile
from desk.wording import counted

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One claim about the day. found: what was counted, in a few words."""

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Facts:
    """What the checks are about: every event in log order, the views' totals, the forks, the stops with a parcel."""

    events: Sequence[Event]
    work: Mapping[str, Work]
    """Per van, as the views count it."""
    forks: Sequence[str]
    view_stops: Sequence[str]
    """Every stop value in the view of deliveries."""
    exceptions: Mapping[str, Mapping[str, Any]]
    decisions: Mapping[str, Mapping[str, Any]]
    """What a person decided about a bill, by its incident."""
    parcels: frozenset[str]
    """Stops that had a parcel to come: planned in the morning or ordered."""


def check_day(facts: Facts) -> list[Check]:
    """Every check."""
    return [
        parcels_once(facts),
        exceptions_closed(facts),
        steps_once(facts),
        told_once(facts),
        kills_recovered(facts),
        bill_explained(facts),
        disputed_once(facts),
        no_fork_left(facts),
        log_and_views_agree(facts),
    ]


def of_kind(events: Iterable[Event], kind: str) -> list[Event]:
    """The events of one kind, repeats included."""
    return [event for event in events if event["kind"] == kind]


def parcels_once(facts: Facts) -> Check:
    """Each parcel was delivered once or came back once; counted raw, so a repeat on the log shows."""
    ended = Counter(e["stop"] for kind in ("delivered", "returned") for e in of_kind(facts.events, kind))
    wrong = sorted(
        stop for stop in facts.parcels | set(ended) if ended[stop] != 1 or stop not in facts.parcels
    )
    back = len(of_kind(facts.events, "returned"))
    return Check(
        "each parcel was delivered once, or is back at the depot",
        not wrong,
        f"{counted(len(facts.parcels), 'parcel')}, {back} back"
        + (f", wrong: {', '.join(wrong)}" if wrong else ""),
    )


def exceptions_closed(facts: Facts) -> Check:
    """Every exception that was opened is closed, once."""
    opened = {e["incident"] for e in of_kind(facts.events, "exception")}
    closed = Counter(e["incident"] for e in of_kind(facts.events, "closed"))
    still = sorted(e for e, value in facts.exceptions.items() if value["state"] != "closed")
    wrong = sorted((opened ^ set(closed)) | {e for e, n in closed.items() if n != 1} | set(still))
    return Check("every exception is closed, once", not wrong, number_and(len(opened), wrong))


def steps_once(facts: Facts) -> Check:
    """Every step that was begun was completed, once."""
    begun = {(e["incident"], e["step"]) for e in of_kind(facts.events, "start")}
    done = Counter((e["incident"], e["step"]) for e in of_kind(facts.events, "step"))
    wrong = sorted(":".join(s) for s in begun | set(done) if done[s] != 1)
    return Check("each step was completed once", not wrong, number_and(len(begun), wrong))


def told_once(facts: Facts) -> Check:
    """Each customer was told once per exception, by key; the raw number stands beside it."""
    told = of_kind(facts.events, "told")
    keys = {(e["incident"], e["stop"]) for e in told}
    ids = {e["id"] for e in told}
    return Check(
        "each customer was told once per exception",
        len(ids) == len(keys),
        f"{counted(len(keys), 'message')}, {len(told)} sent",
    )


def kills_recovered(facts: Facts) -> Check:
    """Every killed process has a successor of its name with another pid; the stack's is whoever took later events."""
    lost = []
    for place, event in enumerate(facts.events):
        if event["kind"] == "killed" and event["agent"] != "stack":
            later = of_kind(facts.events[place:], "agent_up")
            if not any(e["agent"] == event["agent"] and e["pid"] != event["pid"] for e in later):
                lost.append(f"{event['agent']} {event['pid']}")
    kills = len(of_kind(facts.events, "killed"))
    return Check("every kill was recovered", not lost, number_and(kills, lost))


def bill_explained(facts: Facts) -> Check:
    """The bill differs from the honest one by exactly what the discrepancies add up to."""
    bills = of_kind(facts.events, "bill")
    if not bills:
        return Check("the bill is explained to the cent", False, "there is no bill")
    try:
        bill, rates = Bill.from_json(bills[-1]["bill"]), Rates()
    except ValueError as error:
        return Check("the bill is explained to the cent", False, f"the bill cannot be read: {error}")
    gap = bill.total - bill_for(bill.day, facts.work, rates).total
    found = explained(reconcile(bill, facts.work, rates))
    return Check(
        "the bill is explained to the cent", gap == found, f"{dollars(gap)} over, {dollars(found)} explained"
    )


def disputed_once(facts: Facts) -> Check:
    """One outcome a bill at most, and the one a person decided."""
    outcome = {"approved": "disputed", "declined": "paid", "undecided": "undecided"}
    ends = [e for kind in outcome.values() for e in of_kind(facts.events, kind)]
    right = all(
        e["incident"] in facts.decisions and outcome[facts.decisions[e["incident"]]["answer"]] == e["kind"]
        for e in ends
    )
    once = len({e["incident"] for e in ends}) == len(ends)
    text = ", ".join(f"{e['kind']} by {e.get('by')}" for e in ends) or "nothing to dispute"
    return Check("at most one dispute, as a person decided", once and right, text)


def no_fork_left(facts: Facts) -> Check:
    """No fork is open, and no row of one reached a real view."""
    leaked = [stop for stop in facts.view_stops if stop.startswith("billed-")]
    return Check(
        "no fork is left, none of its rows in a view",
        not facts.forks and not leaked,
        f"{counted(len(facts.forks), 'fork')}, {counted(len(leaked), 'row')}",
    )


def log_and_views_agree(facts: Facts) -> Check:
    """The deliveries on the log are the deliveries in the view."""
    log = Counter(e["van"] for e in of_kind(facts.events, "delivered"))
    view = {van: len(did.delivered) for van, did in facts.work.items() if did.delivered}
    return Check(
        "the log and the views agree",
        dict(log) == view,
        counted(sum(view.values()), "delivery", "deliveries"),
    )


def number_and(number: int, wrong: Sequence[str]) -> str:
    """ "17", or "17, wrong: …"."""
    return f"{number}" + (f", wrong: {', '.join(wrong)}" if wrong else "")
