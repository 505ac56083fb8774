"""The tables of the delivery lessons: pure ones from a recorded day, the others from a small day that really runs."""

import pytest

from desk.analysis.bill import bill_beside, billed, discrepancies
from desk.analysis.copies import shares, shares_plot
from desk.analysis.days import checks, morning
from desk.analysis.exception_story import story
from desk.analysis.journal import journal, sent, steps
from desk.analysis.letters import capsules, remembered, told
from desk.analysis.rounds import beside, drops, rounds
from desk.course.fleets import remember_again
from tests.analysis.tuesday import records
from tests.delivery.days import LONG, attended, running


def test_a_story_has_the_death_that_hit_it_and_no_other():
    events = records()["events"]
    incident = next(e["incident"] for e in events if e["kind"] == "replay")
    told = story(events, incident)
    kinds = [e["kind"] for e in told.events]
    assert kinds.index("checkpoint") < kinds.index("killed") < kinds.index("agent_up") < kinds.index("replay")
    assert told.deaths == 1 and kinds[-1] == "closed"
    other = next(e["incident"] for e in events if e["kind"] == "exception" and e["incident"] != incident)
    assert story(events, other).deaths == 0
    assert "same step in two processes" in repr(told.plot())


def test_a_story_reads_the_same_in_every_run():
    events = [
        {"id": "a", "kind": "exception", "agent": "dispatch", "pid": 1, "incident": "x", "at": 1.0, "text": "opened"},
        {"id": "b", "kind": "killed", "agent": "dispatch", "pid": 1, "at": 2.0, "text": "dispatch pid 1 (SIGKILL)"},
        {"id": "c", "kind": "resume", "agent": "dispatch", "pid": 2, "incident": "x", "at": 3.0,
         "text": "resuming workflow C1DW97 from its journal"},
    ]  # fmt: skip
    assert list(story(events, "x").table["text"])[1:] == [
        "dispatch (SIGKILL)",
        "resuming workflow from its journal",
    ]


def test_shares_are_counted_between_the_quarantines():
    def event(kind, agent):
        return {"kind": kind, "agent": agent, "at": 0.0}

    one, two = "routing-1", "routing-2"
    events = [event("start", one), event("start", two), event("quarantined", two), event("start", one),
              event("reinstated", two), event("start", two), event("start", "customer")]  # fmt: skip
    assert shares(events).table.to_numpy().tolist() == [[1, 1], [1, 0], [0, 1]]
    assert "quarantine" in repr(shares_plot(events)) and "quarantine" in repr(shares_plot([]))
    words = "routing-1 began 2 steps; routing-2 began 2 steps; routing-2 was in quarantine from second 0.0 to 0.0."
    assert shares_plot(events).words.endswith(words)


def test_rounds_beside_each_other_need_not_be_of_one_length():
    assert beside({"before": ["a"], "after": ["a", "b"]}).table.to_numpy().tolist() == [["a", "a"], ["", "b"]]


def test_the_morning_is_the_same_every_day():
    assert morning(3) == morning(3)
    assert all(len(round_.drops) == 6 for round_ in morning(8).values())


async def test_a_day_that_runs(tmp_path):
    async with running(tmp_path, speed=0.2, vans=2, orders=0, day="mon") as fleet:
        assert list((await rounds(fleet)).table["drops"]) == [6, 6]
        with pytest.raises(LookupError, match="There is no bill yet"):
            billed(fleet)
        await fleet.incident("sms_down")
        closure = await fleet.incident("closure", "van-2")
        before = await drops(fleet, "van-2")
        await fleet.until("parked", incident=closure, timeout=LONG)
        assert (await capsules(fleet)).table.loc[closure, "attempts"] == 3
        assert repr(told(fleet, closure)) == "nothing yet"
        await fleet.fix_and_redrive()
        await fleet.until("closed", incident=closure, timeout=LONG)
        assert sorted(await drops(fleet, "van-2")) == sorted(before)
        assert set(told(fleet, closure).table["told"]) == {1}
        assert list(steps(fleet, closure).table["done"]) == [1, 1, 1]
        asked = (await sent(fleet, closure)).table  # the redriven message lies in the inbox a second time
        assert dict(asked["sent"]) == {"assess": 1, "replan": 1, "notify": 2}
        assert asked.loc["notify", "to"] == "customer"
        assert list((await journal(fleet, closure)).table.index) == ["assess", "replan", "notify"]
        blocked = (await fleet.until("stopped", incident=closure))["stop"]
        assert list((await remembered(fleet, blocked)).table.index) == [closure]
        assert await remember_again(fleet, blocked) == "1 note remembered again"
        assert list((await remembered(fleet, blocked)).table.index) == [closure]

        mistake = await fleet.incident("overbilled", "van-1")
        await fleet.speed("max")
        asked = await fleet.until("asked", timeout=LONG)
        real, forked = await bill_beside(fleet), await bill_beside(fleet, fork=f"bill-{asked['incident']}")
        assert list(real.table[""]) == ["differs", "same", "$19.70 more billed"]
        assert set(forked.table[""]) == {"same"}
        assert set((await discrepancies(fleet)).table.index) == {"van-1"} and mistake.startswith("mon-")
        async with attended(fleet):
            await fleet.until_over(LONG)
        assert set((await checks(fleet)).table[""]) == {"holds"}
