"""The right answers to the delivery lessons' exercises, found out on a running desk with the lessons' own helpers."""

import pytest

from desk.course import (
    answer_to,
    capsules,
    close_roads,
    drops,
    journal,
    refused,
    rewind,
    shares,
    squeeze_in,
    steps,
    told,
)
from desk.course.exercises import EXERCISES
from desk.course.source import show
from tests.delivery.days import LONG, running


def right(number: str):
    return EXERCISES[number].right


@pytest.fixture
async def fleet(tmp_path):
    async with running(tmp_path, speed=0.2, vans=3, orders=0, day="mon", step_pause=2) as fleet:
        await fleet.until("arrived", timeout=LONG)
        yield fleet


async def test_routing_and_dispatch(fleet):
    closure = await fleet.incident("closure", "van-2")
    holding = await fleet.until("holding", incident=closure, timeout=LONG)
    await squeeze_in(fleet, "s-18", "van-2")
    before = await drops(fleet, "van-2")
    await squeeze_in(fleet, "s-18", "van-2")
    assert len(await drops(fleet, "van-2")) - len(before) == right("7.2")
    await fleet.kill(holding["agent"])
    await fleet.until("closed", incident=closure, timeout=LONG)
    assert sum(steps(fleet, closure).table["begun"] > 1) == right("7.1")

    again = await fleet.incident("closure", "van-1")
    await fleet.until("exception", incident=again, timeout=LONG)
    await fleet.kill("dispatch")
    await fleet.until("closed", incident=again, timeout=LONG)
    assert len((await journal(fleet, again)).table) == right("6.1")
    assert [e["kind"] for e in fleet.events(again)].count("exception") == right("6.2")


async def test_quarantine(fleet):
    await close_roads(fleet, 1)
    await fleet.quarantine("routing-1")
    await close_roads(fleet, 2)
    assert shares(fleet.events()).table.iloc[-1]["routing-1"] == right("8.1")
    alone = [name for name in ("customer", "invoice") if "cannot" in await refused(fleet.quarantine(name))]
    assert right("8.2") == "both" and alone == ["customer", "invoice"]
    assert await refused(fleet.reinstate("routing-1")) == "It was not refused."


async def test_dead_letters_and_memory(fleet):
    await fleet.incident("sms_down")
    closure = await fleet.incident("closure", "van-1")
    await fleet.until("parked", incident=closure, timeout=LONG)
    await fleet.kill("customer")
    assert (closure in (await capsules(fleet)).table.index) == right("9.1")
    await fleet.fix_and_redrive()
    await fleet.until("closed", incident=closure, timeout=LONG)
    assert set(told(fleet, closure).table["told"]) == {right("9.2")}


async def test_views_and_rewind(fleet):
    missed = fleet.laser.query("fleet_events").where_eq("kind", "failed").count().group_by(["van"])
    assert len((await answer_to(missed)).table) == right("5.1")
    assert (await rewind(fleet)).read > 0
    assert "_read(laser, POSITIONS" in show("analysis.rewind", "rewind").text and right("12.1") == "topics"
    assert "raw" in show("delivery.checks", right("13.1")).text
