"""What the delivery desk promises when agents die, answer twice or are asked at once."""

import asyncio
import json
import os
import signal

import cbor2
import pytest

from desk.control.errors import DeskError
from desk.control.fleet import FleetDesk
from desk.delivery import contracts, readers
from desk.delivery.carrier import bill_for
from desk.delivery.exceptions import DeliveryException
from desk.delivery.fleet import Fleet
from desk.delivery.incidents import Planned
from desk.delivery.layout import EVENTS, INBOX, LANE
from desk.delivery.rates import Rates
from desk.delivery.routing import Routing
from desk.runtime.process import Process
from desk.runtime.saved import first, get_json
from desk.runtime.spec import Spec
from tests.delivery.days import LONG, all_hold, dying, kill_and_await, running, slay, until_true

STILL = {"speed": 0.001, "orders": 0}
"""Settings of a world that stands still, so that only the agents move."""
BILL_ONLY = {"vans": 2, "orders": 0, "incidents": (Planned(1, "overbilled", "van-1"),)}


def routing_here(fleet: FleetDesk, name: str, **switches: str) -> Routing:
    """A copy of routing in this process, to be stopped between two lines."""
    spec = Spec(
        name=name,
        module="",
        stream=fleet.stream,
        events_topic=EVENTS,
        folder=fleet.folder,
        settings=fleet.settings,
        switches=switches,
    )
    return Routing(Fleet(Process(spec, fleet.laser, lambda: None)))


class Interrupted:
    """Key-value state in which somebody else writes between a read and the write that follows it, once."""

    def __init__(self, kv, meanwhile):
        self._kv, self._meanwhile = kv, meanwhile

    async def get_entry(self, key):
        entry = await self._kv.get_entry(key)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            await meanwhile()
        return entry

    def __getattr__(self, name):
        return getattr(self._kv, name)


@pytest.mark.parametrize("who_is_interrupted", ["the replan", "the order"])
async def test_a_replan_and_an_order_written_to_one_van_at_once_both_stay(who_is_interrupted, tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        one, two = routing_here(fleet, "routing-8"), routing_here(fleet, "routing-9")
        before = (await fleet.rounds())["van-1"]
        closure = DeliveryException("x-1", "closure", "van-1", before.drops[0])
        taken = {stop for r in (await fleet.rounds()).values() for stop in r.drops}
        order = DeliveryException(
            "x-order", "order", stop=next(s for s in one.f.places if s not in taken and s != "depot")
        )
        replanned = await one.work_out(closure)
        added = {"do": "add", "to": "van-1", "text": ""}
        works = [lambda: one.apply(closure, replanned), lambda: two.apply(order, added)]
        if who_is_interrupted == "the replan":
            one.f.rounds = Interrupted(one.f.rounds, works[1])
            await works[0]()
        else:
            two.f.rounds = Interrupted(two.f.rounds, works[0])
            await works[1]()
        after = (await fleet.rounds())["van-1"]
        assert set(after.applied) == {"x-1", "x-order"}
        assert sorted(after.drops) == sorted((*before.drops, order.stop))


async def test_of_two_copies_that_save_one_plan_at_once_only_the_first_holds(tmp_path):
    async with running(tmp_path, **STILL, step_pause=0.01) as fleet:
        loser, winner = routing_here(fleet, "routing-8"), routing_here(fleet, "routing-9")
        before = (await fleet.rounds())["van-1"]
        incident = f"{fleet.day}-x"
        closure = DeliveryException(incident, "closure", "van-1", before.drops[0])
        work_out = loser.work_out

        async def too_late(exc):
            plan = {**await work_out(exc), "order": before.drops, "text": "the loser's plan"}
            answers.append(await winner.replan(exc, "replan"))
            return plan

        answers, loser.work_out = [], too_late
        answers.append(await loser.replan(closure, "replan"))
        await fleet.until("replay", incident=incident)
        said = [(e["kind"], e["agent"]) for e in fleet.events(incident) if e["kind"] != "start"]
        assert said == [("checkpoint", "routing-9"), ("holding", "routing-9"), ("replay", "routing-8")]
        assert answers[0] == answers[1] and "moved to the end" in answers[0]["text"]
        after = (await fleet.rounds())["van-1"]
        assert after.applied == (incident,) and after.drops[-1] == before.drops[0]


async def test_dispatch_killed_after_assess_goes_on_with_the_same_run_and_assesses_once(tmp_path):
    hold = {f"routing-{n}": {"die_at": "start:replan"} for n in (1, 2)}
    async with running(tmp_path, switches=hold, **STILL) as fleet:
        incident = await fleet.incident("closure", "van-1")
        holding = await fleet.until("start", incident=incident, step="replan")
        run = (await fleet.exceptions())[incident]["run"]
        await fleet.kill("dispatch")
        resumed = await fleet.until("resume", incident=incident)
        await fleet.kill(holding["agent"])
        await fleet.until("closed", incident=incident)
        assert run[-6:] in resumed["text"]
        assert (await fleet.exceptions())[incident]["run"] == run
        assert (await steps_on_the_inbox(fleet, incident)).count("assess") == 1
        done = [e["step"] for e in fleet.events(incident) if e["kind"] == "step"]
        assert done == ["assess", "replan", "notify"]


async def steps_on_the_inbox(fleet: FleetDesk, incident: str) -> list[str]:
    """The step of every command about this incident that was ever put into the inbox."""
    found = []
    for message in await fleet.laser.topic(INBOX).replay().poll():
        body = cbor2.loads(bytes(message.payload)).get("body")
        said = json.loads(bytes(body)) if body else {}
        if said.get("exc", {}).get("id") == incident:
            found.append(said["step"])
    return found


async def test_one_corrupted_line_and_the_fork_no_longer_explains_the_bill(tmp_path):
    places = {"simulator": "day_over"}
    async with running(tmp_path, switches=dying(places), **BILL_ONLY) as fleet:
        await fleet.until("day_over", timeout=LONG)
        honest = await honest_bill(fleet)
        honest["lines"][0]["cents"] += 500
        honest["total"] += 500
        await first(fleet.laser.kv("results"), f"{fleet.day}-bill:bill", honest)
        await fleet.kill("simulator")
        fork = await fleet.until("fork", timeout=LONG)
        assert fork["state"] == "differs" and "$5.00 too much is billed" in fork["text"]
        asked = await fleet.until("asked")
        assert asked["hold"] == 500 and "which costs $6.40" in asked["text"]
        await fleet.decline()
        await fleet.until_over(LONG)
        await all_hold(fleet)


async def honest_bill(fleet: FleetDesk) -> dict:
    return bill_for(fleet.day, await readers.work(fleet.laser), Rates()).to_json()


async def prompts(fleet: FleetDesk) -> int:
    """How often a person was asked on the log."""
    lane = await fleet.laser.assemble_context(
        contracts.conversation(f"{fleet.day}-bill"), topics=[LANE], last_n=1000
    )
    return sum(bool(m.envelope) and m.envelope["kind"] == "command" for m in lane)


async def test_approved_while_invoice_is_away_there_is_one_prompt_one_dispute_and_no_fork(tmp_path):
    async with running(tmp_path, **BILL_ONLY) as fleet:
        asked = await fleet.until("asked", timeout=LONG)
        async with asyncio.timeout(LONG):
            while not await prompts(fleet):  # noqa: ASYNC110 (the prompt is not an event)
                await asyncio.sleep(0.02)
        os.kill(fleet.processes["invoice"].pid, signal.SIGSTOP)
        await fleet.approve(by="Ada")
        await fleet.kill("invoice")
        await fleet.until_over(LONG)
        assert await prompts(fleet) == 1
        ends = [
            (e["kind"], e["by"]) for e in fleet.events(asked["incident"]) if e["kind"] in ("disputed", "paid")
        ]
        assert ends == [("disputed", "Ada")]
        assert await fleet.laser.forks() == [] and fleet.waiting() == []
        await all_hold(fleet)


async def test_a_prompt_says_what_a_person_needs_and_the_first_answer_stands(tmp_path):
    async with running(tmp_path, **BILL_ONLY) as fleet:
        with pytest.raises(DeskError, match="waits for a decision"):
            await fleet.approve()
        await fleet.until("asked", timeout=LONG)
        (prompt,) = fleet.waiting()
        assert "van-1 is billed 8 drops and the log shows 6" in prompt.text
        assert "km and the log shows" in prompt.text and prompt.hold == 2 * 640 + 6 * 115
        assert "the log's totals match the bill" in prompt.text
        await fleet.decline(by="Ada")
        await fleet.approve(by="Bob")
        await fleet.until_over(LONG)
        assert (await fleet.until("paid"))["by"] == "Ada"
        await all_hold(fleet)


async def test_nobody_answering_ends_as_undecided(tmp_path):
    async with running(tmp_path, switches={"invoice": {"answer_within": "0.5"}}, **BILL_ONLY) as fleet:
        await fleet.until_over(LONG)
        assert (await fleet.until("undecided"))["text"] == "undecided, not disputed"
        assert await prompts(fleet) == 1
        await all_hold(fleet)


async def test_a_contract_ends_in_one_of_four_ways(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        await first(fleet.laser.kv("results"), "x-bill:bill", await honest_bill(fleet))
        completed = await contracts.ask(fleet.laser, "x-bill", deadline=20)
        assert (completed.end, completed.again) == (
            "completed",
            False,
        ) and "agrees with the log" in completed.text
        failed = await contracts.ask(fleet.laser, "no-such-bill", deadline=20)
        assert (failed.end, failed.again) == ("failed", False) and "cannot be read" in failed.text
        os.kill(fleet.processes["invoice"].pid, signal.SIGSTOP)
        ignored = await contracts.ask(fleet.laser, "x-bill", deadline=20, expire=0.3)
        assert (ignored.end, ignored.again) == ("not consumed", True)
        late = await contracts.ask(fleet.laser, "x-bill", deadline=0.5)
        assert (late.end, late.again) == ("timed out", True)
        os.kill(fleet.processes["invoice"].pid, signal.SIGCONT)


async def test_a_quarantined_copy_gets_no_step_and_the_last_one_is_refused(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        await fleet.quarantine("routing-1")
        assert (await fleet.skills())["replan"] == ["routing-2"]
        incident = await fleet.incident("closure", "van-1")
        await fleet.until("closed", incident=incident)
        by = {e["agent"] for e in fleet.events(incident) if e["kind"] == "start" and e["step"] != "notify"}
        assert by == {"routing-2"}
        with pytest.raises(DeskError, match="routing-2 is the only one that serves assess, replan, assign"):
            await fleet.quarantine("routing-2")
        with pytest.raises(DeskError, match="customer is the only one that serves notify"):
            await fleet.quarantine("customer")
        with pytest.raises(DeskError, match="dispatch is not an agent"):
            await fleet.quarantine("dispatch")
        await fleet.reinstate("routing-1")
        assert (await fleet.skills())["replan"] == ["routing-1", "routing-2"]


async def test_one_capsule_however_long_it_waits_and_whoever_is_killed(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        await fleet.incident("sms_down")
        incident = await fleet.incident("closure", "van-1")
        await fleet.until("parked", incident=incident)
        for name in ("dispatch", "customer", "dispatch"):
            await kill_and_await(fleet, name)
        assert list(await fleet.parked()) == [incident]
        assert sum(e["kind"] == "parked" for e in fleet.events(incident)) == 1
        assert not any(e["kind"] == "told" for e in fleet.events())
        assert await fleet.fix_and_redrive() == [incident]
        await fleet.until("closed", incident=incident)
        told = [e["stop"] for e in fleet.events(incident) if e["kind"] == "told"]
        assert sorted(told) == sorted(set(told)) and told
        assert await fleet.parked() == {} and await fleet.fix_and_redrive() == []


async def test_both_copies_share_the_work(tmp_path):
    async with running(tmp_path, vans=4, **STILL) as fleet:
        incidents = [await fleet.incident("closure", f"van-{n}") for n in (1, 2, 3, 4)]
        for incident in incidents:
            await fleet.until("closed", incident=incident)
        began = [
            e["agent"] for e in fleet.events() if e["kind"] == "start" and e["step"] in ("assess", "replan")
        ]
        assert began.count("routing-1") == began.count("routing-2") == 4


async def test_what_cannot_be_asked_is_refused_in_a_sentence(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        with pytest.raises(DeskError, match="no incident 'flood': choose from closure"):
            await fleet.incident("flood")
        with pytest.raises(DeskError, match="no van on the road named 'van-9': choose from van-1"):
            await fleet.incident("closure", "van-9")
        with pytest.raises(DeskError, match="2 to 8 vans, not 9"):
            await fleet.vans(9)
        with pytest.raises(DeskError, match="no incident 'x-1' on this day"):
            await fleet.until("closed", incident="x-1", timeout=0.1)


async def test_a_model_writes_in_two_places_and_its_text_is_saved_before_it_is_sent(tmp_path, monkeypatch):
    model = tmp_path / "bin" / "claude"
    model.parent.mkdir()
    model.write_text('#!/bin/sh\necho "a text by $$"; echo "on two lines"\n')
    model.chmod(0o755)
    monkeypatch.setenv("PATH", f"{model.parent}:{os.environ['PATH']}")
    places = {"customer": "told"}
    async with running(tmp_path / "data", llm="claude", switches=dying(places), **STILL) as fleet:
        incident = await fleet.incident("closure", "van-1")
        await slay(fleet, places)
        await fleet.until("closed", incident=incident)
        assessed = await fleet.until("step", incident=incident, step="assess")
        assert assessed["text"].startswith("a text by ") and assessed["text"].endswith(" on two lines")
        told = [(e["stop"], e["text"]) for e in fleet.events(incident) if e["kind"] == "told"]
        assert len(dict(told)) == len(set(told))  # nobody got two different texts
        assert all(text.startswith("a text by ") for _, text in told)


async def test_a_desk_without_its_model_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeskError, match="needs the program claude"):
        async with running(tmp_path, llm="claude"):
            pass


async def test_killed_in_the_hold_the_next_process_applies_the_saved_plan_and_does_not_hold_again(tmp_path):
    async with running(tmp_path, step_pause=20, **STILL) as fleet:
        incident = await fleet.incident("closure", "van-1")
        holding = await fleet.until("holding", incident=incident)
        name = holding["agent"]
        dead = await fleet.kill(name, by="button")
        await fleet.until("closed", incident=incident)
        story = [
            e["kind"] for e in fleet.events()
            if e["agent"] == name and (e.get("step") == "replan" or e["kind"] in ("killed", "agent_up"))
        ]  # fmt: skip
        assert story == [
            "agent_up",
            "start",
            "checkpoint",
            "holding",
            "killed",
            "agent_up",
            "start",
            "replay",
            "step",
        ]
        replay = await fleet.until("replay", incident=incident)
        assert replay["pid"] != dead and replay["text"] == "found the saved plan, applying it"
        done = await fleet.until("step", incident=incident, step="replan")
        assert "goes round the closure" in done["text"] and done["text"].endswith(
            "moved to the end of the round."
        )


async def test_the_place_to_die_is_noted_before_its_event(tmp_path):
    async with running(tmp_path, **STILL) as fleet:
        here, noted = routing_here(fleet, "routing-8", die_at="start:replan").f, []

        async def written(kind, **fields):  # whoever reads it may kill at once
            noted.append(await get_json(here.cursors, "break:routing-8:start:replan"))

        here.me.event = written
        await here.event("start", minute=0.0, step="assess")
        holding = asyncio.create_task(here.event("start", minute=0.0, step="replan"))
        await until_true(lambda: len(noted) == 2)
        assert noted == [None, here.me.pid] and not holding.done()
        holding.cancel()
