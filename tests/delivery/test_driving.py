"""Vans in time, and the day as the log tells it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.delivery import driving, incidents
from desk.delivery.driving import Van
from desk.delivery.history import History
from desk.delivery.incidents import FIVE, Planned, busiest, orders, vans_to_change
from desk.delivery.planning import progress
from desk.delivery.planning.round import DEPOT, Round

ROADS = {
    ("depot", "a"): 1000,
    ("a", "depot"): 1500,
    ("depot", "b"): 2000,
    ("a", "b"): 800,
    ("b", "depot"): 500,
}


def metres(a, b):
    return 0 if a == b else ROADS.get((a, b), 3000)


def test_a_kilometre_takes_three_minutes_and_a_drop_four():
    van = driving.departed(Van("van-1"), "a", 10, metres)
    assert driving.due(van, metres) == 13
    there = driving.arrived(van, 13, metres, to_a_drop=True)
    assert (there.doing, there.at, there.metres) == ("making", "a", 1000)
    assert driving.due(there, metres) == 17
    assert driving.finished(there, 17).doing == "idle"


def test_a_van_that_turns_drives_back_the_way_it_came():
    van = driving.departed(Van("van-1"), "a", 0, metres)
    turned = driving.departed(van, "b", 1.5, metres)
    assert (turned.at, turned.off, turned.back, turned.metres) == (DEPOT, "a", 500, 500)
    assert driving.where(turned, 2.25, metres) == (DEPOT, "a", 0.25)
    assert driving.where(turned, 3, metres) == (DEPOT, DEPOT, 0.0)
    assert driving.where(turned, 6, metres) == (DEPOT, "b", 0.5)
    assert driving.due(turned, metres) == 1.5 + 1.5 + 6
    assert driving.arrived(turned, 9, metres, to_a_drop=True).metres == 500 + 500 + 2000


steps = st.lists(
    st.tuples(st.sampled_from(["depart a", "depart b", "depart depot", "stop", "free"]), st.floats(0.01, 5)),
    max_size=12,
)


@given(steps)
def test_whatever_a_van_is_told_it_never_jumps_and_its_odometer_never_falls(told):
    van, minute = Van("van-1"), 0.0
    for what, wait in told:
        at = min(minute + wait, driving.due(van, metres))
        before = driving.where(van, at, metres), driving.odometer(van, at, metres)
        if at == driving.due(van, metres) and van.doing == "driving":
            van = driving.arrived(van, at, metres, to_a_drop=False)
        elif what.startswith("depart"):
            van = driving.departed(van, what.split()[1], at, metres)
        elif what == "stop":
            van = driving.stopped(van, "closure", "d-1", at, metres)
        else:
            van = driving.freed(van, at) if van.doing == "stopped" else van
        place, far = driving.where(van, at, metres), driving.odometer(van, at, metres)
        assert far == pytest.approx(before[1])
        assert far >= van.metres - 1e-6
        if before[0][2] not in (0.0, 1.0) and place[2] not in (0.0, 1.0):
            assert place[:2] == before[0][:2] and place[2] == pytest.approx(before[0][2], abs=1e-6)
        assert Van.from_json(van.to_json()) == van
        minute = at


def test_a_round_follows_its_van_and_again_is_the_same_as_once():
    start = Round("van-1", drops=("a", "b"))
    for change in (
        progress.claimed,
        lambda r: progress.reached(r, "a"),
        lambda r: progress.failed(r, "a", 1),
        progress.claimed,
        lambda r: progress.reached(r, "b"),
        lambda r: progress.delivered(r, "b"),
        lambda r: progress.reached(replace(r, back=("c",)), DEPOT),
        progress.home,
    ):
        start = change(start)
        assert change(start) == start
    assert start == Round("van-1", retry=("a",))


def event(kind, **fields):
    event.number += 1
    return {"id": f"e{event.number}", "kind": kind, "agent": "simulator", "minute": 1.0, **fields}


event.number = 0


def test_history_counts_the_same_event_once():
    history, failed = History(), event("failed", van="van-1", stop="a", incident="d-1")
    for e in (event("incident", state="nobody_home", van="van-1", incident="d-1"), failed, failed):
        history.note(e)
    assert history.attempts["a"] == 1 and history.missed["van-1"] == ["a"]
    assert history.due == {"d-1"}


def test_work_is_due_until_it_is_closed_or_waits_for_a_person():
    history = History()
    for stop, end in (("a", "closed"), ("b", "parked"), ("c", "")):
        history.note(event("order", stop=stop, incident=f"d-{stop}"))
        if end:
            history.note(event(end, incident=f"d-{stop}"))
    assert history.due == {"d-c"}


def test_a_halt_waits_until_the_van_has_stopped_for_it():
    history = History()
    history.note(event("incident", state="closure", van="van-1", incident="d-1", planned=0))
    assert history.halts["van-1"] == {"d-1": "closure"} and history.played == {0}
    history.note(event("stopped", van="van-1", incident="d-1"))
    assert history.halts["van-1"] == {} and history.due == {"d-1"}


def test_orders_are_the_same_for_the_same_seed():
    stops = [f"s-{n}" for n in range(30)]
    assert orders(7, stops) == orders(7, stops[::-1]) != orders(8, stops)
    assert len({stop for _, stop in orders(7, stops, 12)}) == 12
    assert len(orders(7, stops[:3])) == 3


def test_incidents_survive_the_trip_to_a_switch():
    assert incidents.from_text(incidents.to_text(FIVE)) == list(FIVE)
    assert incidents.from_text(None) == []
    assert {p.what for p in FIVE} == set(incidents.INCIDENTS)
    assert incidents.from_text(incidents.to_text([Planned(1, "closure", "van-2")]))[0].van == "van-2"


def test_the_busiest_van_has_the_incident():
    rounds = [Round("van-1", drops=("a",)), Round("van-2", drops=("b", "c")), Round("van-3", parked=True)]
    assert busiest(rounds) == "van-2"
    assert busiest(rounds[2:]) == ""


def test_the_slider_takes_the_highest_numbers_and_brings_the_lowest_back():
    driving = ["van-4", "van-1", "van-3"]
    assert vans_to_change(2, driving, []) == (["van-4"], [])
    assert vans_to_change(5, driving, []) == ([], ["van-2", "van-5"])
    assert vans_to_change(3, driving, []) == ([], [])


def test_a_van_that_has_yet_to_hand_over_neither_counts_nor_comes_back():
    driving = ["van-1", "van-2", "van-3", "van-4"]
    assert vans_to_change(2, driving, ["van-3", "van-4"]) == ([], [])
    assert vans_to_change(4, driving, ["van-3", "van-4"]) == ([], ["van-5", "van-6"])
    assert vans_to_change(8, driving, ["van-4"]) == ([], ["van-5", "van-6", "van-7", "van-8"])
