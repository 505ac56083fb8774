"""Anybody may write to the topics of a day: what is not the desk's ends no process and reaches no person as an error."""

import json

import pytest

from desk.analysis.rewind import rewind
from desk.control.errors import DeskError
from desk.delivery.incidents import Planned
from desk.delivery.layout import EVENTS, POSITIONS
from desk.panels.live_map import MapPanel
from tests.delivery.days import LONG, all_hold, attended, dying, kill_and_await, running, until_true

FOREIGN = (
    b"\xff\xfe\x00 not JSON",
    b"not JSON either",
    b'{"minute": 3',
    b"[1, 2]",
    b"7",
    b'"delivered"',
    b"null",
    b"{}",
    b'{"kind": "delivered"}',
    b'{"kind": "failed", "incident": "x-1"}',
    b'{"kind": ["order"], "status": {"a": 1}, "incident": "x-2"}',
    b'{"minute": "noon"}',
    b'{"id": "x", "at": "now", "kind": "closed", "agent": null, "pid": "one"}',
    *(json.dumps({"id": f"f-{number}", "at": 1.0, "agent": "simulator", "pid": 1, **rest}).encode()
      for number, rest in enumerate((
        {"kind": "order", "minute": 1.0},
        {"kind": "order", "minute": 1.0, "stop": "s-999", "incident": "x-3"},
        {"kind": "van_moved", "minute": 1.0, "after": {"doing": "driving"}},
        {"kind": "joined", "minute": 1.0, "van": "van-1"},
        {"kind": "joined", "minute": 1.0, "van": "van-1", "after": 7},
        {"kind": "delivered", "minute": "noon"},
        {"kind": "failed", "minute": 1.0, "stop": "s-01"},
        {"kind": "stopped", "minute": 1.0, "van": "van-1", "incident": "x-4", "why": "lunch", "status": "stopped"},
        {"kind": "incident", "minute": 1.0, "incident": "x-5", "state": "flood", "van": "van-1"},
        {"kind": "wanted", "what": "rain"},
        {"kind": "wanted", "what": "vans", "count": "many"},
        {"kind": "granted"},
        {"kind": "moot", "van": ["van-1"]},
        {"kind": "closed"},
        {"kind": "bill", "incident": "x-6"},
        {"kind": "asked", "incident": "x-7"},
        {"kind": "exception", "incident": "x-8", "state": "flood"},
        {"kind": "told"},
      ))),
)  # fmt: skip


@pytest.fixture
async def day(tmp_path):
    """A day with foreign records on both topics, written while it runs."""
    async with running(tmp_path, vans=2, orders=1) as fleet:
        for name in (EVENTS, POSITIONS):
            topic = fleet.laser.topic(name)
            for payload in FOREIGN:
                await topic.publish().raw_bytes(payload, "json").send()
        yield fleet


async def test_a_day_goes_on_over_records_that_are_not_the_desks(day):
    await until_true(lambda: day.log.foreign == len(FOREIGN))
    for name in ("simulator", "dispatch"):  # the next one reads the log anew, the foreign records with it
        await kill_and_await(day, name)
    panel = MapPanel(day)
    said = f"not the desk's and passed over: {len(FOREIGN)}"
    await until_true(lambda: said in panel._clock.value)
    await day.until_over(LONG)
    assert not panel._trouble
    assert (await rewind(day.laser, day.day)).foreign == 2 * len(FOREIGN)
    died = [event for event in day.events() if event["kind"] == "died"]
    assert not died
    await all_hold(day)


BILL = {"vans": 2, "orders": 0, "incidents": (Planned(6.0, "overbilled"),)}


@pytest.mark.parametrize(
    ("report", "why"),
    [({"van": "van-1", "metres": "far"}, "holds words for metres"), ({"van": 7, "metres": 9.0}, "refuses our row")],
)  # fmt: skip
async def test_whose_record_was_first_in_a_view_may_spoil_it_and_the_bill_closes_with_a_sentence(
    tmp_path, report, why
):
    async with running(tmp_path, switches=dying({"simulator": "departed"}), **BILL) as fleet:
        await fleet.until("departed", timeout=LONG)  # no van has reported yet
        await fleet.laser.topic(POSITIONS).publish().json(report).send()
        await fleet.kill("simulator")
        closed = await fleet.until_over(LONG)
        assert closed["text"].startswith(f"The bill {fleet.day}-bill cannot be checked: ")
        assert why in closed["text"]
        assert (await fleet.until("bill_answer"))["state"] == "unreadable"
        assert not await fleet.laser.forks()
        if "words" in why:
            with pytest.raises(DeskError, match="holds words for metres"):
                await fleet.checks()


async def test_a_bill_is_checked_beside_what_the_views_have_of_others(tmp_path):
    async with running(tmp_path, **BILL) as fleet, attended(fleet):
        await fleet.until("departed", timeout=LONG)
        for topic, record in (
            (POSITIONS, {"van": "van-1", "metres": 1e30}),
            (POSITIONS, {"van": ["van-1"], "metres": 3.0}),
            (EVENTS, {"kind": "delivered", "van": "van-1"}),
            (EVENTS, {"kind": "failed", "stop": "s-01"}),
            (EVENTS, {"kind": "start", "incident": 1, "step": ["a"]}),
        ):
            await fleet.laser.topic(topic).publish().json(record).send()
        await fleet.kill("dispatch")  # the next one asks the view who was sent what
        await fleet.until_over(LONG)
        assert [e["text"] for e in fleet.events(f"{fleet.day}-bill") if e["kind"] == "disputed"] == [
            "$19.70 held back, as decided"
        ]
        await all_hold(fleet)
