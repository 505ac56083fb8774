"""A day and its kills: whoever is killed and whenever, the same parcels arrive at the same minutes, once."""

import asyncio

import pytest

from desk.delivery.incidents import FIVE
from tests.delivery.days import LONG, all_hold, attended, dying, outcomes, running, slay


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
