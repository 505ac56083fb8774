"""Rewind: what a frame holds, and that nothing but the records goes into it."""

from collections import Counter
from itertools import pairwise
from unittest.mock import AsyncMock, Mock

import laser_sdk as ls
import pytest

from desk.analysis.frames import Fold, table
from desk.analysis.recovery import recoveries
from desk.analysis.rewind import Rewind
from desk.analysis.rewind import rewind as read_again
from desk.analysis.spans import recovering, spans
from desk.analysis.whereabouts import piece, side_by_side, spots, trail
from desk.control.errors import DeskError
from tests.analysis.tuesday import records, tuesday


def at(van: str, minute: float, **fields):
    """A position report."""
    base = {"lon": 144.9, "lat": -37.8, "status": "driving", "metres": 0.0, "at": "depot", "stop": "s-01"}
    return {"van": van, "minute": minute, **base, **fields}


def test_a_van_is_where_its_last_report_of_the_minute_put_it():
    fold = Fold()
    fold.positions([at("van-1", 3.1, metres=1.0), at("van-1", 3.9, metres=2.0), at("van-1", 4.0, metres=3.0)])
    frames = fold.frames()
    assert [frame.vans["van-1"].metres if frame.vans else None for frame in frames] == [None] * 3 + [2.0, 3.0]


def test_a_minute_without_a_report_keeps_the_last_one():
    fold = Fold()
    fold.positions([at("van-1", 0.0, metres=1.0), at("van-2", 2.0)])
    assert [list(frame.vans) for frame in fold.frames()] == [["van-1"], ["van-1"], ["van-1", "van-2"]]


def test_memory_grows_with_frames_and_not_with_records():
    fold = Fold()
    for lap in range(50):
        fold.positions(at("van-1", minute / 100, metres=float(lap)) for minute in range(1000))
    assert sum(len(spots) for spots in fold.spots.values()) == 10


@pytest.mark.parametrize(
    "foreign",
    [
        {"hello": 1}, "text", [1], None, 7, {**at("van-1", 2.0), "minute": "now"}, {**at("van-1", 2.0), "minute": -1},
        {**at("van-1", 2.0), "at": "home"}, at("bus", 2.0), at("van-1", 1e12), at("van-1", 2.0, lon=float("nan")),
        {"id": "x", "kind": "delivered", "at": 3.0}, {"id": ["x"], "kind": "order", "at": 3.0},
        {"id": "x", "kind": "order", "at": None}, {"id": "x", "kind": "step", "at": 3.0, "step": "replan"},
    ],
)  # fmt: skip
def test_what_is_not_the_desks_is_passed_over_and_counted(foreign):
    fold = Fold()
    fold.positions([foreign, *records()["positions"]])
    fold.happenings([*records()["events"], foreign])
    rewind = Rewind("tue", tuple(fold.frames()), 0, fold.foreign)
    assert rewind.minutes == tuesday().minutes
    assert repr(rewind).endswith("; not the desk's and passed over: 2")
    assert "passed over" not in repr(tuesday())


async def test_a_topic_with_bytes_that_are_no_json_can_be_read():
    def topic(name):
        rows = [Mock(json=Mock(return_value=row)) for row in records()[name.removeprefix("fleet.")]]
        no_json = Mock(json=Mock(side_effect=ls.CodecError("expected value at line 1 column 1")))
        return Mock(replay=lambda: Mock(poll=AsyncMock(side_effect=[[no_json, *rows], []])))

    found = await read_again(Mock(topic=topic), "tue")
    assert found.foreign == 2
    assert found.minutes == tuesday().minutes


def test_an_event_without_a_demo_clock_belongs_to_the_last_minute_named_before_it():
    fold = Fold()
    fold.happenings(
        [
            {"id": "a", "kind": "agent_up", "at": 1.0, "agent": "customer", "pid": 1},
            order := {"id": "b", "kind": "order", "at": 1.0, "agent": "simulator", "pid": 2, "stop": "s-01",
                      "incident": "tue-s-01", "minute": 7.9},
            {"id": "c", "kind": "killed", "at": 1.0, "agent": "customer", "pid": 1},
            order,
        ]
    )  # fmt: skip
    assert [(e["id"], e["minute"]) for e in fold.events] == [("a", 0.0), ("b", 7.9), ("c", 7.9)]
    assert fold.frames()[7].agents == {"customer": "down"}
    assert fold.frames()[7].stops == {"s-01": "ordered"}


def test_the_frames_of_a_day_end_as_the_log_counts_it():
    last, events = tuesday().minutes[-1], records()["events"]
    for kind, counted in (("delivered", last.delivered), ("failed", last.failed)):
        raw = Counter(e["van"] for e in events if e["kind"] == kind)
        assert {van: n for van, n in counted.items() if n} == dict(raw)
    driven = {p["van"]: p["metres"] for p in records()["positions"]}
    assert {van: spot.metres for van, spot in last.vans.items()} == driven
    assert not last.open
    assert last.minute == int(max(p["minute"] for p in records()["positions"]))


def test_the_same_from_batches_of_any_size():
    fold = Fold()
    for name, take in (("positions", fold.positions), ("events", fold.happenings)):
        rows = records()[name]
        for start in range(0, len(rows), 7):
            take(rows[start : start + 7])
    assert fold.frames() == list(tuesday().minutes)


def test_tables_have_a_row_a_minute_and_van_and_a_row_an_event():
    rewind = tuesday()
    assert len(rewind.frames) == sum(len(frame.vans) for frame in rewind.minutes)
    assert len(rewind.events) == len({e["id"] for e in records()["events"]})
    assert table([]).empty


def test_an_agent_holds_a_step_until_it_is_done_or_the_agent_is_dead():
    found = spans(records()["events"])
    done = {e["id"] for e in records()["events"] if e["kind"] == "step"}
    assert Counter(s.end for s in found.steps) == {"done": len(done), "killed": 1, "parked": 1}
    killed = next(s for s in found.steps if s.end == "killed")
    after = [s for s in found.steps if (s.incident, s.step) == (killed.incident, killed.step) and s != killed]
    assert [(s.agent, s.end) for s in after] == [(killed.agent, "done")]
    assert [m.kind for m in found.marks if m.agent == killed.agent] == ["killed", "replay"]


def test_recovery_is_from_the_death_to_the_same_step_in_the_next_process():
    rows = recoveries(recovering(records()["events"]))
    assert list(rows["agent"]) == ["routing-2"]
    assert 0 < rows["up"].iloc[0] < rows["working"].iloc[0] < 5


def test_a_trail_follows_the_road():
    path = trail(tuesday().minutes, "van-1")
    assert len(path) > 60
    assert all(abs(a - c) < 0.02 and abs(b - d) < 0.02 for (a, b), (c, d) in pairwise(path))
    assert piece([(0, 0), (1, 0), (2, 0)], (1.5, 0)) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("minute", [999, -1, "9:20", 1.5])
def test_a_minute_that_is_no_frame(minute):
    ends = tuesday().minutes[-1].minute
    with pytest.raises(DeskError, match=f"^The day has the minutes 0 to {ends}, not {minute!r}.$"):
        tuesday().map(minute)


@pytest.mark.parametrize("show", [Rewind.drops, Rewind.map, Rewind.animation])
def test_an_empty_day_has_nothing_to_show(show):
    with pytest.raises(DeskError, match=r"^Nothing is on the log of day mon: there is nothing to show\.$"):
        show(Rewind("mon", (), 0))


def test_a_van_that_has_come_back_is_not_off_the_road():
    def words(events):
        fold = Fold()
        fold.positions(records()["positions"])
        fold.happenings(events)
        chart = Rewind("tue", tuple(fold.frames()), 0).drops().figure.axes[0]
        return [text.get_text() for text in chart.texts if "off the road" in text.get_text()]

    joined = next(e for e in records()["events"] if e["kind"] == "joined" and e["van"] == "van-3")
    back = {**joined, "id": "back", "minute": 60.0}
    off = {**back, "id": "off", "kind": "van_parked", "minute": 70.0}
    assert words(records()["events"]) == ["2, off the road at 09:20"]
    assert words([*records()["events"], back]) == []
    assert words([*records()["events"], back, off]) == ["2, off the road at 10:10"]


def test_vans_at_one_place_stand_side_by_side():
    fold = Fold()
    fold.positions(at(f"van-{n}", 0.0, lon=144.9 if n < 7 else 145.0) for n in range(1, 8))
    aside = side_by_side(spots(fold.frames()[0]))
    assert len(set(aside.values())) == 6
    assert aside["van-1"] == aside["van-7"] == (0, 0, "")
    assert aside["van-5"] == (0, 1, "")


def test_what_keeps_vans_from_driving_is_said_once_a_row():
    here = {f"van-{n}": ((144.9, -37.8), "parked" if n > 2 else "idle") for n in range(1, 9)}
    found = side_by_side({**here, "van-9": ((145.0, -37.8), "stopped")})
    rows = [[van for van, stand in found.items() if stand.down == row] for row in range(3)]
    assert rows == [["van-1", "van-2", "van-9"], ["van-3", "van-4", "van-5", "van-6"], ["van-7", "van-8"]]
    assert {van: stand.word for van, stand in found.items() if stand.word} == {
        "van-6": "parked", "van-8": "parked", "van-9": "stopped",
    }  # fmt: skip
