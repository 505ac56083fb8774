"""Rounds: how a day starts and what each kind of trouble does to them, over any table of metres."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.delivery.planning import changes
from desk.delivery.planning.compare import compare
from desk.delivery.planning.round import DEPOT, Round, arrivals, length, nearest_first
from desk.delivery.planning.start import bearing, slices, start_rounds
from desk.delivery.roads import load_legs, load_places

STOPS = [f"s-{n}" for n in range(8)]
PLACES = [DEPOT, *STOPS]
LEGS = load_legs()
POINTS = {place.id: (place.lon, place.lat) for place in load_places().values()}
DEPOT_AT = POINTS.pop(DEPOT)


@st.composite
def tables(draw):
    """Any road metres, as asymmetric as they like."""
    cells = draw(st.lists(st.integers(1, 9_000), min_size=81, max_size=81))
    rows = dict(zip(((a, b) for a in PLACES for b in PLACES), cells, strict=True))
    return lambda a, b: 0 if a == b else rows[a, b]


@st.composite
def rounds(draw, van="van-1", stops=tuple(STOPS), least=0, most=6):
    """Any round at any moment: idle, on the way, or making a drop."""
    drops = tuple(draw(st.lists(st.sampled_from(stops), unique=True, min_size=least, max_size=most)))
    doing = draw(st.sampled_from(["idle", "driving", "serving"] if drops else ["idle"]))
    heading = "" if doing == "idle" else drops[0]
    others = [place for place in PLACES if place not in drops]
    at = heading if doing == "serving" else draw(st.sampled_from(others))
    return Round(van, at, drops, heading, serving=doing == "serving")


def same_drops(before, after):
    assert sorted(after) == sorted(before)
    assert len(set(after)) == len(after)


def kept_in_service(before, after):
    if before.serving:
        assert (after.drops[0], after.heading, after.serving) == (before.drops[0], before.heading, True)
    elif after.heading:
        assert after.heading == after.drops[0] == before.heading


@given(rounds(), tables())
def test_a_new_order_is_added_once_and_moves_nothing_else(before, metres):
    stop = next(s for s in STOPS if s not in before.drops)
    after = changes.with_order_inserted(before, stop, metres)
    same_drops((*before.drops, stop), after.drops)
    assert tuple(drop for drop in after.drops if drop != stop) == before.drops
    assert after.heading == before.heading
    kept_in_service(before, after)


@given(rounds(most=5), tables())
def test_an_insertion_is_the_best_place_and_never_beats_the_best_of_all_rounds(before, metres):
    stop = next(s for s in STOPS if s not in before.drops)
    option = changes.cheapest_insertion(before, stop, metres)
    fixed = 1 if before.heading else 0
    now = length(before.at, before.drops, metres)
    everywhere = [
        length(before.at, (*before.drops[:i], stop, *before.drops[i:]), metres) - now
        for i in range(fixed, len(before.drops) + 1)
    ]
    assert option.extra == min(everywhere)
    assert option.cost == option.extra + 1500 * len(before.drops)
    first, free = before.drops[:fixed], (*before.drops[fixed:], stop)
    best = min(length(before.at, (*first, *order), metres) for order in permutations(free))
    assert now + option.extra >= best


@given(rounds(stops=STOPS[:4]), rounds("van-2", STOPS[4:7]), tables())
def test_an_order_goes_to_the_van_that_needs_least(one, two, metres):
    option = changes.best_van([one, two], STOPS[7], metres)
    costs = {r.van: changes.cheapest_insertion(r, STOPS[7], metres).cost for r in (one, two)}
    assert costs[option.van] == min(costs.values())


def test_each_drop_a_van_has_counts_a_kilometre_and_a_half():
    def metres(a, b):
        return 0 if a == b else 1000

    busy = Round("van-1", drops=("s-0", "s-1"))
    assert changes.cheapest_insertion(busy, "s-2", metres).cost == 1000 + 3000
    assert changes.best_van([busy, Round("van-2")], "s-2", metres).van == "van-2"


def test_no_van_driving_is_said():
    with pytest.raises(ValueError, match="no van"):
        changes.best_van([Round("van-1", parked=True)], "s-0", lambda a, b: 1)


@given(rounds(least=1), tables(), st.data())
def test_a_closure_puts_the_blocked_drop_last_and_the_rest_nearest_next(before, metres, data):
    blocked = data.draw(st.sampled_from(before.drops))
    after = changes.round_the_closure(before, blocked, metres)
    same_drops(before.drops, after.drops)
    kept_in_service(before, after)
    if blocked in before.open_drops:
        assert after.drops[-1] == blocked
    here = before.at
    rest = [d for d in after.open_drops if d != blocked]
    for i, drop in enumerate(rest):
        assert metres(here, drop) == min(metres(here, other) for other in rest[i:])
        here = drop


@given(rounds(most=5))
def test_a_failed_drop_goes_to_the_end(before):
    failed = next(s for s in STOPS if s not in before.drops)
    after = changes.try_again_last(before, failed)
    assert after.drops == (*before.drops, failed)
    assert changes.try_again_last(after, failed).drops == after.drops
    kept_in_service(before, after)


@given(rounds(stops=STOPS[:3]), rounds("van-2", STOPS[3:6]), rounds("van-3", STOPS[6:]), tables())
def test_the_van_that_takes_over_has_the_lowest_score(stopped, two, three, metres):
    chosen = changes.taker(stopped, [stopped, two, three], metres)
    scores = {r.van: metres(r.at, stopped.at) / 1000 + 2 * len(r.drops) for r in (two, three)}
    assert scores[chosen] == min(scores.values())


@given(rounds(stops=STOPS[:4]), rounds("van-2", STOPS[4:]), tables())
def test_a_handover_loses_nothing_and_orders_the_whole_round_nearest_first(stopped, other, metres):
    after = changes.taken_over(other, stopped.drops, metres)
    same_drops((*stopped.drops, *other.drops), after.drops)
    kept_in_service(other, after)
    assert after.open_drops == nearest_first(other.at, after.open_drops, metres)
    assert changes.taken_over(after, stopped.drops, metres).drops == after.drops


def test_nobody_takes_over_from_the_last_van():
    with pytest.raises(ValueError, match="no other van"):
        changes.taker(Round("van-1"), [Round("van-1"), Round("van-2", parked=True)], lambda a, b: 1)


def test_the_way_there_counts_not_the_way_back():
    there_and_back = {("a", "b"): 100, ("b", "a"): 9000, ("a", "c"): 200, ("c", "a"): 10}

    def metres(a, b):
        return there_and_back.get((a, b), 500)

    assert nearest_first("a", ["c", "b"], metres) == ("b", "c")
    assert nearest_first("a", ["b", "c"], lambda a, b: metres(b, a)) == ("c", "b")


@pytest.mark.parametrize("vans", range(2, 9))
def test_a_day_starts_with_the_six_nearest_stops_of_each_slice(vans):
    names = [f"van-{n}" for n in range(1, vans + 1)]
    found, left = start_rounds(DEPOT_AT, POINTS, names, LEGS.metres)
    assert list(found) == names
    same_drops(POINTS, [*left, *(stop for r in found.values() for stop in r.drops)])
    parts = slices(DEPOT_AT, POINTS, vans)
    for van, part in zip(names, parts, strict=True):
        drops = found[van].drops
        assert len(drops) == 6 and set(drops) <= set(part)
        furthest = max(LEGS.metres(DEPOT, stop) for stop in drops)
        assert all(LEGS.metres(DEPOT, stop) >= furthest for stop in set(part) - set(drops))
        assert drops == nearest_first(DEPOT, drops, LEGS.metres)
    angles = [[bearing(DEPOT_AT, POINTS[stop]) for stop in part] for part in parts]
    assert all(max(a) <= min(b) for a, b in pairwise(angles))


def test_arrivals_take_three_minutes_a_kilometre_and_four_a_drop():
    def metres(a, b):
        return 0 if a == b else 1000

    assert arrivals(Round("van-1", drops=("s-0", "s-1")), 10, metres) == {"s-0": 13, "s-1": 20}
    making = Round("van-1", "s-0", ("s-0", "s-1"), "s-0", serving=True)
    assert arrivals(making, 10, metres) == {"s-1": 17}


def test_a_round_survives_the_trip_through_json():
    before = Round("van-1", "s-0", ("s-0", "s-1"), "s-0", True, retry=("s-2",), applied=("d-1",))
    assert Round.from_json(before.to_json()) == before
    assert Round.from_json({**before.to_json(), "drops": ["s-0", "s-1"]}) == before


def test_a_solver_drives_the_same_drops_and_no_further():
    found, _ = start_rounds(DEPOT_AT, POINTS, ["van-1", "van-2"], LEGS.metres)
    result = compare(found, LEGS.metres, solutions=50)
    same_drops([d for r in found.values() for d in r.drops], [d for r in result.rounds.values() for d in r])
    assert 0 < result.solver <= result.desk
    assert result.over == result.desk / result.solver - 1
