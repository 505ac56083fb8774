"""A day and its kills: whoever is killed and whenever, the same parcels arrive at the same minutes, once."""

import asyncio
import sys

import pytest

from desk.control.day import kills
from desk.control.fleet import AGENTS
from desk.delivery.incidents import FIVE
from tests.delivery.days import LONG, all_hold, attended, dying, outcomes, running, slay, until_true


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What becomes of every parcel on a day with the five incidents and no kill."""

    async def day():
        async with running(tmp_path_factory.mktemp("undisturbed"), incidents=FIVE) as fleet, attended(fleet):
            await fleet.until_over(LONG)
            await all_hold(fleet)
            return outcomes(fleet), fleet.events()

    return asyncio.run(day())


def test_a_day_has_each_incident_and_ends_with_the_bill(undisturbed):
    _, events = undisturbed
    kinds = {event["kind"] for event in events}
    assert {e["state"] for e in events if e["kind"] == "incident"} == {p.what for p in FIVE}
    assert {"stopped", "van_parked", "failed", "parked", "fixed", "redriven", "asked", "disputed"} <= kinds
    assert "dead_letter" not in kinds and "retry" not in kinds


def test_every_customer_gets_an_hour_and_whoever_was_let_down_twice_an_apology(undisturbed):
    _, events = undisturbed
    texts = [e["text"] for e in events if e["kind"] == "told"]
    assert texts and all(text.startswith("Hello ") and " between " in text for text in texts)
    late_again = [text for text in texts if "this is the second time we've been late to you" in text]
    assert all(text.endswith("and we've flagged it.") for text in late_again)


PLACES = {
    "as work begins": {
        "dispatch": "exception", "routing-1": "start", "routing-2": "start", "customer": "start",
        "invoice": "start", "simulator": "incident",
    },
    "between saving and applying": {
        "dispatch": "closed", "routing-1": "checkpoint", "routing-2": "checkpoint", "customer": "told",
        "invoice": "fork", "simulator": "stopped",
    },
    "done but not answered": {
        "dispatch": "bill_answer", "routing-1": "step", "routing-2": "step:replan", "customer": "step",
        "invoice": "step", "simulator": "failed",
    },
    "while a person is asked": {
        "routing-1": "checkpoint:replan", "customer": "parked",
        "invoice": "asked", "simulator": "order",
    },
    "at the end": {"simulator": "day_over", "invoice": "disputed", "dispatch": "closed"},
    "on the road": {"simulator": "delivered", "routing-2": "start:replan", "customer": "told"},
}  # fmt: skip


@pytest.mark.parametrize("when", PLACES)
async def test_killed_anywhere_the_day_is_the_same(when, tmp_path, undisturbed):
    places = PLACES[when]
    async with (
        running(tmp_path, incidents=FIVE, switches=dying(places)) as fleet,
        attended(fleet),
    ):
        await slay(fleet, places)
        await fleet.until_over(LONG)
        await all_hold(fleet)
        killed = {e["agent"] for e in fleet.events() if e["kind"] == "killed"}
        assert killed == set(places)
        assert outcomes(fleet) == undisturbed[0]


async def test_the_stack_itself_killed_three_times_the_day_is_the_same(tmp_path, undisturbed):
    async with running(tmp_path, incidents=FIVE) as fleet, attended(fleet):
        for events in (60, 100, 140):
            await until_true(lambda n=events: len(fleet.events()) >= n)
            await fleet.kill("stack", by="test")
        await fleet.until_over(LONG)
        await all_hold(fleet)
        assert outcomes(fleet) == undisturbed[0]


async def test_the_monkey_all_day_long_the_day_is_the_same(tmp_path, undisturbed):
    async with running(tmp_path, incidents=FIVE) as fleet, attended(fleet):
        await fleet.chaos(True, every=0.3, seed=5)
        await fleet.until("day_over", timeout=LONG)
        await fleet.chaos(False)
        await fleet.until_over(LONG)
        await all_hold(fleet)
        assert sum(e["kind"] == "killed" for e in fleet.events()) > 3
        assert outcomes(fleet) == undisturbed[0]


async def test_the_command_ends_with_its_verdict(tmp_path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "desk", "delivery", "--day", "--vans", "2", "--kills", "3", "--data", str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    lines = out.decode().splitlines()
    assert lines[-1] == "day closed: 9 checks, 0 failed" and process.returncode == 0
    assert sum(" killed " in line for line in lines) == 3


def test_the_same_seed_plans_the_same_kills():
    planned = list(kills(7, 10, vans=8))
    assert planned == list(kills(7, 10, vans=8)) != list(kills(8, 10, vans=8))
    assert len(planned) == 10 and {name for _, name in planned} <= set(AGENTS)
