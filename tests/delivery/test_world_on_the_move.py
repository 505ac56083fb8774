"""The vans on the road: slider, second attempts, several incidents at once, days that follow each other."""

from collections import Counter
from itertools import pairwise

from desk.delivery import readers
from desk.delivery.clock import MINUTES_PER_METRE
from desk.delivery.incidents import Planned
from desk.delivery.layout import EVENTS, POSITIONS
from tests.delivery.days import LONG, all_hold, attended, running, slay, until_true


async def test_five_at_once_two_on_one_van_one_on_a_parked_van_and_the_last_stays(tmp_path):
    at_once = (
        Planned(2, "closure", "van-1"), Planned(2, "closure", "van-1"), Planned(2, "nobody_home", "van-1"),
        Planned(2, "unreachable", "van-2"), Planned(2, "sms_down"),
    )  # fmt: skip
    later = (
        Planned(30, "closure", "van-2"),
        Planned(31, "unreachable", "van-3"),
        Planned(32, "unreachable", "van-1"),
    )
    async with (
        running(tmp_path, orders=2, incidents=(*at_once, *later)) as fleet,
        attended(fleet, bill=False),
    ):
        await fleet.until_over(LONG)
        await all_hold(fleet)
        texts = [e["text"] for e in fleet.events() if e["kind"] in ("moot", "step")]
        assert "van-2 is parked: road closure changes nothing" in texts
        assert sum("is the last van driving and cannot be parked" in text for text in texts) == 1
        assert sum(e["kind"] == "van_parked" for e in fleet.events()) == 2


async def test_a_second_failed_attempt_goes_back_to_the_depot_and_is_reported(tmp_path):
    seven_times = tuple(Planned(1, "nobody_home", "van-1") for _ in range(7))
    async with running(tmp_path, vans=2, orders=0, incidents=seven_times) as fleet:
        await fleet.until_over(LONG)
        await all_hold(fleet)
        (back,) = [e for e in fleet.events() if e["kind"] == "returned"]
        assert "back at the depot after two attempts" in back["text"]
        attempts = Counter(e["stop"] for e in fleet.events() if e["kind"] == "failed")
        assert sorted(attempts.values()) == [1, 1, 1, 1, 1, 2] and attempts[back["stop"]] == 2
        told = [e["text"] for e in fleet.events() if e["kind"] == "told" and e["stop"] == back["stop"]]
        assert "going back to our depot" in told[-1] and "second time we've been late" in told[-1]
        assert (await fleet.stops())[back["stop"]]["state"] == "returned"


async def test_the_slider_takes_vans_off_the_road_and_brings_them_back(tmp_path):
    async with running(tmp_path, vans=4, orders=0, speed=0.001) as fleet:
        assert await fleet.vans(2) == "2 vans on the road"
        for van in ("van-3", "van-4"):
            await fleet.until("van_parked", van=van)
        rounds = await fleet.rounds()
        assert [van for van, r in sorted(rounds.items()) if r.parked] == ["van-3", "van-4"]
        assert sorted(s for r in rounds.values() for s in r.drops) == sorted(await fleet.stops())
        await fleet.vans(5)
        rounds = await fleet.rounds()
        assert sorted(van for van, r in rounds.items() if not r.parked) == [f"van-{n}" for n in range(1, 6)]


async def test_watched_and_killed_no_van_jumps_back_and_no_drop_repeats(tmp_path):
    async with running(tmp_path, vans=4, orders=2, speed=60) as fleet:
        for stops in (2, 8, 14):
            await until_true(lambda n=stops: sum(e["kind"] == "delivered" for e in fleet.events()) >= n)
            await fleet.kill("simulator")
        await fleet.until_over(LONG)
        await all_hold(fleet)
        for reports in (await positions(fleet)).values():
            for before, now in pairwise(reports):
                assert now["minute"] >= before["minute"]
                driven = now["metres"] - before["metres"]
                assert -0.1 <= driven <= (now["minute"] - before["minute"]) / MINUTES_PER_METRE + 0.2


async def positions(fleet):
    """Every position report by van, in log order."""
    found = {}
    for message in await fleet.laser.topic(POSITIONS).replay().poll():
        record = message.json()
        found.setdefault(record["van"], []).append(record)
    return found


async def test_the_log_read_from_its_first_record_gives_the_same_tables_as_the_views(tmp_path):
    async with running(tmp_path, incidents=(Planned(3, "nobody_home"),)) as fleet:
        await fleet.until_over(LONG)
        records = [m.json() for m in await fleet.laser.topic(EVENTS).replay(from_offsets=[0]).poll()]
        reports = await positions(fleet)
        counts = {
            kind: Counter(r["van"] for r in records if r["kind"] == kind) for kind in ("delivered", "failed")
        }
        assert await readers.delivered(fleet.laser) == dict(counts["delivered"])
        assert await readers.failed(fleet.laser) == dict(counts["failed"])
        assert await readers.metres(fleet.laser) == {
            v: max(r["metres"] for r in rs) for v, rs in reports.items()
        }
        steps = Counter(r["agent"] for r in records if r["kind"] == "step")
        assert await readers.per_agent(fleet.laser, "step") == dict(steps)
        stops = Counter((r["van"], r["stop"]) for r in records if r["kind"] == "delivered")
        assert {(v, s): n for v, s, n in await readers.stops(fleet.laser, "delivered")} == dict(stops)


async def test_a_customer_let_down_on_two_days_is_told_so_once_a_day(tmp_path):
    closed = {"vans": 2, "orders": 0, "incidents": (Planned(1, "closure", "van-1"),)}
    places = {"customer": "told"}
    async with running(tmp_path, day="monday", switches={"customer": {"die_at": "told"}}, **closed) as fleet:
        await slay(fleet, places)
        await fleet.until_over(LONG)
        first_day = {e["stop"]: e["text"] for e in fleet.events() if e["kind"] == "told"}
        assert first_day and not any("late to you" in text for text in first_day.values())
    later = {**closed, "incidents": (Planned(1.001, "closure", "van-1"),)}
    async with running(tmp_path, resume=True, day="tuesday", **later) as fleet:
        assert fleet.stream == "fleet-tuesday"
        assert (await fleet.until("incident"))["minute"] == 1.001
        await fleet.until_over(LONG)
        second_day = {e["stop"]: e["text"] for e in fleet.events() if e["kind"] == "told"}
        assert second_day.keys() == first_day.keys()
        assert all("this is the second time" in text for text in second_day.values())
    async with running(tmp_path, resume=True) as fleet:
        assert fleet.stream == "fleet-tuesday"
        assert {e["stop"] for e in fleet.events() if e["kind"] == "told"} == set(second_day)
