"""Plans: worked out once, applied in any order and any number of times, nothing lost."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from desk.delivery import plans
from desk.delivery.exceptions import DeliveryException
from desk.delivery.planning import progress
from desk.delivery.planning.round import DEPOT, Round
from desk.delivery.roads import load_legs, load_places

PLACES, METRES = load_places(), load_legs().metres
STOPS = [f"s-{n:02}" for n in range(1, 9)]

CLOSURE = DeliveryException("d-1", "closure", "van-1", STOPS[0])
GONE = DeliveryException("d-2", "unreachable", "van-1")
MISSED = DeliveryException("d-3", "missed", "van-1", STOPS[6], attempt=1)
TWICE = DeliveryException("d-3", "missed", "van-1", STOPS[6], attempt=2)
ORDER = DeliveryException("d-s-08", "order", stop=STOPS[7])


@st.composite
def fleets(draw):
    """Two vans in the middle of a day; the first has something to make and a parcel that failed."""
    mine = tuple(draw(st.permutations(STOPS[:4])))
    theirs = tuple(draw(st.permutations(STOPS[4:6])))
    serving = draw(st.booleans()) and mine[0] != STOPS[0]
    heading = mine[0] if serving or draw(st.booleans()) else ""
    one = Round("van-1", mine[0] if serving else DEPOT, mine, heading, serving, retry=(STOPS[6],))
    return {"van-1": one, "van-2": Round("van-2", drops=theirs, heading=theirs[0])}


def plan_of(exc, rounds):
    return plans.work_out(exc, rounds, PLACES, METRES)


def do(rounds, exc, plan):
    """Apply a plan the way routing does, one compare-and-swap after another."""
    rounds = dict(rounds)
    if exc.van:
        own = rounds[exc.van]
        rounds[exc.van] = own = plans.applied(own, exc, plan, METRES) or own
    if "to" in plan:
        drops = own.handed if exc.van else ()
        to = plan["to"]
        if rounds[to].parked:
            to = next(van for van, r in rounds.items() if not r.parked)
        rounds[to] = plans.taken(rounds[to], exc, drops, METRES) or rounds[to]
    return rounds


def parcels(rounds):
    return sorted(stop for r in rounds.values() for stop in (*r.drops, *r.retry, *r.back))


@given(fleets(), st.sampled_from([CLOSURE, GONE, MISSED, TWICE, ORDER]))
def test_applied_twice_is_the_same_as_once(rounds, exc):
    plan = plan_of(exc, rounds)
    once = do(rounds, exc, plan)
    assert once != rounds
    assert do(once, exc, plan) == once


@given(fleets(), st.permutations([CLOSURE, GONE, MISSED, ORDER]))
def test_plans_of_the_same_moment_applied_in_any_order_lose_nothing(rounds, order):
    worked_out = {exc.id: plan_of(exc, rounds) for exc in order}
    after = rounds
    for exc in order:
        after = do(after, exc, worked_out[exc.id])
    assert parcels(after) == sorted(STOPS)
    assert after["van-1"].parked and not after["van-1"].open_drops
    if rounds["van-1"].serving:
        assert after["van-1"].drops == (rounds["van-1"].heading,)


@given(fleets())
def test_a_replan_and_an_order_for_one_van_both_stay_whoever_writes_first(rounds):
    order = {"do": "add", "to": "van-1", "text": ""}
    closure = plan_of(CLOSURE, rounds)
    for sequence in permutations([(CLOSURE, closure), (ORDER, order)]):
        after = rounds
        for exc, plan in sequence:
            after = do(after, exc, plan)
        van = after["van-1"]
        assert set(van.applied) == {CLOSURE.id, ORDER.id}
        assert sorted(van.drops) == sorted((*rounds["van-1"].drops, ORDER.stop))


@given(fleets())
def test_a_drop_made_while_the_plan_waited_does_not_come_back(rounds):
    plan = plan_of(CLOSURE, rounds)
    first = rounds["van-1"].drops[0]
    after = do({**rounds, "van-1": progress.delivered(rounds["van-1"], first)}, CLOSURE, plan)
    assert first not in after["van-1"].drops


def test_a_second_failed_attempt_goes_back_to_the_depot():
    start = Round("van-1", at=STOPS[6], drops=(STOPS[6], STOPS[0]), heading=STOPS[6], serving=True)
    for exc, drops, back in ((MISSED, (STOPS[0], STOPS[6]), ()), (TWICE, (STOPS[0],), (STOPS[6],))):
        rounds = {"van-1": progress.failed(start, STOPS[6], exc.attempt), "van-2": Round("van-2")}
        after = do(rounds, exc, plan_of(exc, rounds))["van-1"]
        assert (after.drops, after.back, after.retry) == (drops, back, ())


def test_a_parcel_that_failed_twice_is_not_handed_to_another_van():
    start = Round("van-1", at=STOPS[6], drops=(STOPS[6], STOPS[0]), heading=STOPS[6], serving=True)
    rounds = {"van-1": progress.failed(start, STOPS[6], 2), "van-2": Round("van-2")}
    after = do(do(rounds, GONE, plan_of(GONE, rounds)), TWICE, plan_of(TWICE, rounds))
    assert (after["van-1"].back, after["van-2"].drops) == ((STOPS[6],), (STOPS[0],))


def test_a_closure_of_a_van_that_has_handed_over_says_that_it_changes_nothing():
    rounds = {"van-1": Round("van-1", drops=(STOPS[0],)), "van-2": Round("van-2")}
    parked = do(rounds, GONE, plan_of(GONE, rounds))
    assert plan_of(CLOSURE, parked)["text"].endswith("is not on van-1 any more: the closure changes nothing.")


def test_of_two_vans_that_stop_at_once_only_one_may_leave():
    roster = {"driving": ["van-1", "van-2"], "left": {}}
    other = DeliveryException("d-9", "unreachable", "van-2")
    roster = plans.leaving(roster, GONE)
    assert roster["left"] == {GONE.id: True} and roster["driving"] == ["van-2"]
    roster = plans.leaving(roster, other)
    assert roster["left"][other.id] is False and roster["driving"] == ["van-2"]
    assert plans.leaving(roster, GONE) is None
    assert plans.staying(other)["text"] == (
        "van-2 is the last van driving and cannot be parked: it stays on the road."
    )
    assert plans.joining(roster, "van-1")["driving"] == ["van-2", "van-1"]
    assert plans.joining(roster, "van-2") is None


def test_a_plan_says_what_it_does():
    rounds = {"van-1": Round("van-1", drops=tuple(STOPS[:3])), "van-2": Round("van-2")}
    assert plan_of(CLOSURE, rounds)["text"] == (
        f"van-1 goes round the closure: {PLACES[STOPS[0]].suburb} moved to the end of the round."
    )
    assert plan_of(GONE, rounds)["text"] == "van-1 is off the road: van-2 takes over 3 drops."
    one = {**rounds, "van-1": Round("van-1", drops=(STOPS[0],))}
    assert plan_of(GONE, one)["text"] == "van-1 is off the road: van-2 takes over 1 drop."
    door = f"van-1: nobody home at {PLACES[MISSED.stop].name}"
    on_board = {**rounds, "van-1": Round("van-1", retry=(MISSED.stop,))}
    assert plan_of(MISSED, on_board)["text"] == f"{door}, moved to the end of the round."
    assert plan_of(MISSED, rounds)["text"] == f"{door}, the parcel is on another van already."


def test_what_is_an_exception_and_what_is_not():
    def read(**record):
        return DeliveryException.from_record({"minute": 3.0, **record}, run="r")

    assert read(kind="failed", incident="d-1", van="van-1", stop="s-01", attempt=1).kind == "missed"
    assert read(kind="order", incident="d-s-01", stop="s-01").van == ""
    assert read(status="stopped", why="closure", incident="d-2", van="van-1").kind == "closure"
    assert read(kind="stopped", why="removed", incident="d-2", van="van-1").kind == "removed"
    assert read(kind="delivered", van="van-1", stop="s-01") is None
    assert read(status="driving", van="van-1") is None
