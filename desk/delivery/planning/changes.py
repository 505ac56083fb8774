"""How a round changes: a new order, a closed road, nobody home, a driver who does not answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from desk.delivery.planning.round import Metres, Round, length, nearest_first

METRES_PER_DROP_HELD = 1500.0  # what each drop a van already has adds to the cost of one more
METRES_PER_STOP_LEFT = 2000.0  # what each stop still to make adds to the score of a van that might take over


@dataclass(frozen=True)
class Insertion:
    """Where a new drop goes in a round and what it costs there.

    `position` counts within `drops`; `extra` is metres driven, the way back to the depot included; `cost` adds
    1.5 km for each drop the van already has.
    """

    van: str
    position: int
    extra: float
    cost: float


def cheapest_insertion(round_: Round, stop: str, metres: Metres) -> Insertion:
    """The cheapest place for one more drop. It never goes before the drop the van is driving to or making."""
    fixed = 1 if round_.heading else 0
    before = length(round_.at, round_.drops, metres)
    extra, position = min(
        (length(round_.at, (*round_.drops[:i], stop, *round_.drops[i:]), metres) - before, i)
        for i in range(fixed, len(round_.drops) + 1)
    )
    return Insertion(round_.van, position, extra, extra + METRES_PER_DROP_HELD * len(round_.drops))


def best_van(rounds: Iterable[Round], stop: str, metres: Metres) -> Insertion:
    """The insertion with the lowest cost over all vans still driving. ValueError when there is none."""
    options = [cheapest_insertion(r, stop, metres) for r in rounds if not r.parked]
    if not options:
        raise ValueError("no van is driving")
    return min(options, key=lambda option: (option.cost, option.van))


def with_order_inserted(round_: Round, stop: str, metres: Metres) -> Round:
    """The round with the new drop at its cheapest place."""
    at = cheapest_insertion(round_, stop, metres).position
    drops = (*round_.drops[:at], stop, *round_.drops[at:])
    return round_.with_order(drop for drop in drops if drop not in round_.in_service)


def round_the_closure(round_: Round, blocked: str, metres: Metres) -> Round:
    """The rest of the round first, nearest next from where the van stands, and the blocked drop last."""
    open_drops = round_.open_drops
    rest = nearest_first(round_.at, [stop for stop in open_drops if stop != blocked], metres)
    return round_.with_order((*rest, *(stop for stop in open_drops if stop == blocked)))


def try_again_last(round_: Round, failed: str) -> Round:
    """The failed drop at the end of the round, for a second attempt."""
    return round_.with_order((*(stop for stop in round_.open_drops if stop != failed), failed))


def taker(stopped: Round, rounds: Iterable[Round], metres: Metres) -> str:
    """The van that takes over: kilometres from the stopped van plus 2 for each stop it still has, lowest wins.

    ValueError when no other van is driving.
    """
    others = [r for r in rounds if not r.parked and r.van != stopped.van]
    if not others:
        raise ValueError("no other van is driving")
    return min(
        others, key=lambda r: (metres(r.at, stopped.at) + METRES_PER_STOP_LEFT * len(r.drops), r.van)
    ).van


def taken_over(round_: Round, drops: Iterable[str], metres: Metres) -> Round:
    """The round with the handed-over drops, all of it nearest first from where the van stands."""
    new = [stop for stop in drops if stop not in round_.drops]
    return round_.with_order(nearest_first(round_.at, (*round_.open_drops, *new), metres))
