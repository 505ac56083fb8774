"""What people do to a delivery desk at an awkward moment: twice, too late, too quickly, or wrongly."""

import asyncio
import os
import signal
from functools import partial

import pytest

from desk.control.errors import DeskError
from desk.delivery.exceptions import DeliveryException
from desk.delivery.incidents import Planned
from desk.delivery.layout import POSITIONS
from desk.delivery.planning import progress
from desk.delivery.planning.round import Round
from desk.runtime.saved import first, put_json
from tests.delivery.days import LONG, all_hold, dying, running
from tests.delivery.test_agents import BILL_ONLY, STILL, honest_bill, routing_here


async def test_an_answer_that_comes_too_late_is_refused_and_changes_nothing(tmp_path):
    async with running(tmp_path, switches={"invoice": {"answer_within": "0.5"}}, **BILL_ONLY) as fleet:
        await fleet.until_over(LONG)
        with pytest.raises(DeskError, match="in time: it is undecided, and not disputed"):
            await fleet.approve()
        await all_hold(fleet)


async def test_two_people_fix_and_redrive_at_once_and_each_message_goes_once(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        await fleet.incident("sms_down", "van-1")
        incident = await fleet.incident("closure", "van-1")
        await fleet.until("parked", incident=incident)
        sent = await asyncio.gather(fleet.fix_and_redrive("Ada"), fleet.fix_and_redrive("Bob"))
        assert incident in (*sent[0], *sent[1])
        await fleet.until("closed", incident=incident)
        told = [e["stop"] for e in fleet.events(incident) if e["kind"] == "told"]
        assert told and len(told) == len(set(told))


async def test_a_message_that_could_not_be_sent_again_stays_on_the_desk(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        await fleet.incident("sms_down", "van-1")
        incident = await fleet.incident("closure", "van-1")
        await fleet.until("parked", incident=incident)
        letter = (await fleet.parked())[incident]
        damaged = {**letter, "capsule": {**letter["capsule"], "source": "no bytes"}}
        await put_json(fleet.laser.kv("parked"), incident, damaged)
        with pytest.raises(ValueError, match="hexadecimal"):
            await fleet.fix_and_redrive()
        assert list(await fleet.parked()) == [incident]
        await put_json(fleet.laser.kv("parked"), incident, letter)
        assert await fleet.fix_and_redrive() == [incident]
        await fleet.until("closed", incident=incident)
        assert await fleet.parked() == {}


async def test_the_slider_moved_back_at_once_counts_only_vans_that_stay(tmp_path):
    async with running(tmp_path, **{**STILL, "vans": 4}) as fleet:
        copies = [fleet.processes[name].pid for name in ("routing-1", "routing-2")]
        for pid in copies:
            os.kill(pid, signal.SIGSTOP)
        assert await fleet.vans(3) == "3 vans on the road"
        assert await fleet.vans(8) == "7 vans on the road, as van-4 must hand over first"
        assert await fleet.vans(4) == "4 vans on the road"
        for pid in copies:
            os.kill(pid, signal.SIGCONT)
        for van in ("van-4", "van-6", "van-7", "van-8"):
            await fleet.until("van_parked", van=van)
        rounds = await fleet.rounds()
        assert sorted(v for v, r in rounds.items() if not r.parked) == ["van-1", "van-2", "van-3", "van-5"]
        assert await fleet.vans(4) == "4 vans on the road"


async def test_a_simulator_killed_while_a_van_joins_is_replaced_by_one_that_lets_it_join(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        await first(fleet.laser.kv("rounds"), "van-4", Round("van-4").to_json())  # as far as it came
        await fleet.vans(4)
        assert any(e["kind"] == "joined" and e["van"] == "van-4" for e in fleet.events())


async def test_a_drop_that_was_made_before_the_kill_is_not_failed_by_what_happens_after_it(tmp_path):
    async with running(
        tmp_path, vans=2, orders=0, speed=10, switches=dying({"simulator": "arrived"})
    ) as fleet:
        arrived = await fleet.until("arrived", timeout=LONG)
        van, stop = arrived["van"], arrived["stop"]
        round_ = progress.delivered(
            (await fleet.rounds())[van], stop
        )  # what the killed one did, and no event
        await put_json(fleet.laser.kv("rounds"), van, round_.to_json())
        await put_json(fleet.laser.kv("stops"), stop, {"state": "delivered", "van": van})
        unlucky = asyncio.create_task(fleet.incident("nobody_home", van))
        await fleet.until("wanted", what="nobody_home")
        await fleet.kill("simulator")
        await unlucky
        await fleet.until("delivered", stop=stop, timeout=LONG)
        await fleet.until("failed", van=van, timeout=LONG)
        await fleet.speed("max")
        await fleet.until_over(LONG)
        await all_hold(fleet)


async def test_a_new_simulator_reads_every_position_report_however_many(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        late = {"minute": 99.0, "van": "van-1", "status": "idle", "metres": 0.0, "lon": 144.9, "lat": -37.8,
                "at": "depot", "stop": ""}  # fmt: skip
        for record, batches in (({**late, "minute": 0.0}, 10), (late, 1)):  # one poll takes in 10,000
            for _ in range(batches):
                batch = fleet.laser.topic(POSITIONS).publish_batch()
                for _ in range(1_000):
                    batch = batch.add_json(record)
                await batch.send()
        await fleet.kill("simulator")
        assert await fleet.vans(4) == "4 vans on the road"
        joined = await fleet.until("joined", van="van-4")
        assert joined["minute"] >= 99


async def test_a_parcel_handed_over_before_its_second_attempt_was_planned_is_not_called_lost(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        routing = routing_here(fleet, "routing-8")
        missed_stop = (await fleet.rounds())["van-1"].drops[0]
        await routing.change("van-1", lambda r: progress.failed(r, missed_stop, 1))
        gone = DeliveryException("x-1", "unreachable", "van-1")
        missed = DeliveryException("x-2", "missed", "van-1", missed_stop, attempt=1)
        parking, again = await routing.work_out(gone), await routing.work_out(missed)
        taker = await routing.apply(gone, parking)
        assert missed_stop in await routing.affected(gone, taker)
        assert await routing.affected(missed, await routing.apply(missed, again)) == {}


async def test_checks_asked_for_right_after_a_kill_wait_for_whoever_is_on_the_way_back(tmp_path):
    async with running(tmp_path, vans=2, orders=0) as fleet:
        await fleet.until_over(LONG)
        for name in ("customer", "simulator"):
            dead = await fleet.kill(name)
            await fleet.until("killed", pid=dead)
            await all_hold(fleet)


@pytest.mark.parametrize("wrong", [{"quantity": "six"}, {"what": "fuel"}])
async def test_a_bill_nobody_can_read_is_named_at_once_and_the_day_ends(wrong, tmp_path):
    places = {"simulator": "day_over"}
    async with running(tmp_path, vans=2, orders=0, switches=dying(places)) as fleet:
        await fleet.until("day_over", timeout=LONG)
        bill = await honest_bill(fleet)
        bill["lines"][0].update(wrong)
        await first(fleet.laser.kv("results"), f"{fleet.day}-bill:bill", bill)
        await fleet.kill("simulator")
        closed = await fleet.until_over(LONG)
        assert "cannot be read: line 1 makes no sense" in closed["text"]
        failing = [check for check in await fleet.checks() if not check.holds]
        assert ["cannot be read" in check.found for check in failing] == [True]


@pytest.mark.parametrize(
    "given, match",
    [
        ({"vans": "4"}, "2 to 8 vans, not '4'"), ({"vans": 2.5}, "2 to 8 vans"), ({"vans": None}, "2 to 8 vans"),
        ({"orders": -1}, "customers cannot order"), ({"orders": "x"}, "customers cannot order"),
        ({"day": "a/b"}, "A day cannot be called"), ({"day": 5}, "A day cannot be called"),
        ({"incidents": ["flood"]}, "no incident 'flood'"),
        ({"incidents": (Planned(1, "flood"),)}, "There is no incident"),
        ({"incidents": (Planned(1, "closure", "van-9"),)}, "There is no 'van-9'"),
        ({"incidents": (Planned(float("nan"), "closure"),)}, "demo minute from 0 on"),
    ],
)  # fmt: skip
async def test_a_day_that_cannot_be_is_refused_before_anything_starts(given, match, tmp_path):
    with pytest.raises(DeskError, match=match):
        async with running(tmp_path, **given):
            pass
    assert not list(tmp_path.iterdir())


async def test_an_incident_for_a_van_that_is_not_on_the_road_is_said_to_change_nothing(tmp_path):
    nowhere = (Planned(1, "closure", "van-7"),)
    async with running(tmp_path, vans=2, orders=0, incidents=nowhere) as fleet:
        moot = await fleet.until("moot", van="van-7", timeout=LONG)
        assert moot["text"] == "van-7 is not on the road: road closure changes nothing"
        await fleet.until_over(LONG)
        await all_hold(fleet)


async def test_who_cannot_be_reinstated_and_a_desk_that_has_stopped(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        for name in ("nobody", "dispatch", "", None):
            with pytest.raises(DeskError, match="is not an agent of the registry"):
                await fleet.reinstate(name)
        with pytest.raises(DeskError, match="2 to 8 vans, not '4'"):
            await fleet.vans("4")
    for work in (fleet.incident("closure"), fleet.vans(3), fleet.speed(2)):
        with pytest.raises(DeskError, match="This desk has stopped"):
            await work


async def test_a_day_is_over_when_its_last_closed_has_been_read_too(tmp_path, monkeypatch):
    async with running(tmp_path, **STILL) as fleet:
        bill, last = f"{fleet.day}-bill", f"{fleet.day}-1"
        close = partial(fleet._emit, "closed", minute=1.0, state="closure", text="closed")
        await close(incident=bill)
        closing = [last]

        async def exceptions():  # KV has it at once, a reader of the log a moment later
            if closing:
                await close(incident=closing.pop())
            return {last: {"state": "closed"}}

        monkeypatch.setattr(fleet, "exceptions", exceptions)
        await fleet.until_over(LONG)
        assert [e["incident"] for e in fleet.events() if e["kind"] == "closed"] == [bill, last]
