"""What routing decides and how a decision changes a round: the plan is worked out once, and applying it twice is the
same as once. Pure: rounds and a table of metres in, plan or round out.

A plan is plain values, saved whole in KV before any of it is applied. It says what to do, not what a round will look
like, so that it can be applied on top of whatever else happened to the round meanwhile.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from desk.delivery.exceptions import DeliveryException
from desk.delivery.planning import changes
from desk.delivery.planning.round import Metres, Round
from desk.delivery.roads import Place
from desk.wording import counted

Plan = dict[str, Any]


def work_out(
    exc: DeliveryException, rounds: Mapping[str, Round], places: Mapping[str, Place], metres: Metres
) -> Plan:
    """What to do about this exception: {"do", "van", "to", "order", "text"} as far as each applies."""
    if exc.kind == "closure":
        order = changes.round_the_closure(rounds[exc.van], exc.stop, metres).open_drops
        if exc.stop in rounds[exc.van].drops:
            where = places[exc.stop].suburb
            text = f"{exc.van} goes round the closure: {where} moved to the end of the round."
        else:
            text = f"{places[exc.stop].name} is not on {exc.van} any more: the closure changes nothing."
        return {"do": "reorder", "van": exc.van, "order": order, "text": text}
    if exc.kind == "missed":
        again = exc.attempt < 2
        what = "moved to the end of the round" if again else "goes back to the depot after two attempts"
        if again and exc.stop not in rounds[exc.van].retry:
            what = "the parcel is on another van already"
        text = f"{exc.van}: nobody home at {places[exc.stop].name}, {what}."
        return {"do": "again" if again else "back", "van": exc.van, "text": text}
    if exc.kind == "order":
        option = changes.best_van(rounds.values(), exc.stop, metres)
        text = f"{places[exc.stop].name} goes to {option.van}: {option.extra / 1000:.1f} km more."
        return {"do": "add", "to": option.van, "text": text}
    drops, to = len(rounds[exc.van].drops), ""
    if any(not r.parked for van, r in rounds.items() if van != exc.van):
        to = changes.taker(rounds[exc.van], rounds.values(), metres)
    text = (
        f"{exc.van} is off the road: {to} takes over {counted(drops, 'drop')}."
        if drops
        else f"{exc.van} is off the road."
    )
    return {"do": "park", "van": exc.van, "to": to, "text": text}


def staying(exc: DeliveryException) -> Plan:
    """What is done instead of parking the last van that drives."""
    text = f"{exc.van} is the last van driving and cannot be parked: it stays on the road."
    return {"do": "nothing", "van": exc.van, "text": text}


def leaving(roster: Mapping[str, Any], exc: DeliveryException) -> Mapping[str, Any] | None:
    """The roster of driving vans after this van asked to leave it, or None when it has asked before.

    Two vans may stop at once, each believing the other drives on: whoever asks second stays. The roster is
    {"driving": vans, "left": {exception: whether it may leave}}.
    """
    if exc.id in roster["left"]:
        return None
    others = [van for van in roster["driving"] if van != exc.van]
    may = bool(others)
    driving = others if may else roster["driving"]
    return {"driving": driving, "left": {**roster["left"], exc.id: may}}


def joining(roster: Mapping[str, Any], van: str) -> Mapping[str, Any] | None:
    """The roster with this van on it, or None when it is."""
    if van in roster["driving"]:
        return None
    return {**roster, "driving": [*roster["driving"], van]}


def applied(round_: Round, exc: DeliveryException, plan: Plan, metres: Metres) -> Round | None:
    """The exception's own van with the plan applied, or None when it already is."""
    if exc.id in round_.applied:
        return None
    done = replace(round_, applied=(*round_.applied, exc.id))
    if plan["do"] == "reorder":
        return reordered(done, plan["order"], metres)
    if plan["do"] == "again" and exc.stop in done.retry:
        without = replace(done, retry=tuple(stop for stop in done.retry if stop != exc.stop))
        return changes.try_again_last(without, exc.stop)
    if plan["do"] == "park":
        handed = (*done.open_drops, *done.retry)
        return replace(done, drops=done.in_service, heading=done.heading if done.serving else "",
                       retry=(), handed=handed, parked=True)  # fmt: skip
    return done


def taken(round_: Round, exc: DeliveryException, drops: Iterable[str], metres: Metres) -> Round | None:
    """Another van with what the plan gives it, or None when it has it already or is itself parked."""
    if exc.id in round_.applied or round_.parked:
        return None
    done = replace(round_, applied=(*round_.applied, exc.id))
    if exc.kind == "order":
        return changes.with_order_inserted(done, exc.stop, metres)
    return changes.taken_over(done, drops, metres) if drops else done


def reordered(round_: Round, order: Iterable[str], metres: Metres) -> Round:
    """The planned order as far as it still holds; a drop that came meanwhile goes to its cheapest place."""
    planned = tuple(stop for stop in order if stop in round_.open_drops)
    came = [stop for stop in round_.open_drops if stop not in planned]
    new = replace(round_, drops=(*round_.in_service, *planned)).with_order(planned)
    for stop in came:
        new = changes.with_order_inserted(new, stop, metres)
    return new
