"""Killed anywhere: the ticket goes on, what was recorded is not done again, money moves once."""

import asyncio
import os
import signal

import pytest

from desk.control import DeskError
from desk.control.events import Event
from desk.control.lane import Offset
from desk.control.support import SupportDesk

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_killed_in_the_hold_it_replays_and_repeats_nothing(support: SupportDesk) -> None:
    ticket = await support.run("duplicate", kill="resolver", at="holding")
    counts = support.counts(ticket)
    assert (counts.looked_up, counts.held, counts.asked_raw, counts.replied_raw, counts.paid) == (
        1,
        1,
        1,
        1,
        1,
    )
    replay = await support.until(ticket, "replay")
    assert replay["text"] == "from checkpoint, 2 turn(s) since: order_lookup, its result"


async def test_killed_before_the_result_was_recorded_it_looks_up_again(support: SupportDesk) -> None:
    counts = support.counts(await support.run("duplicate", kill="resolver", at="looking_up"))
    assert (counts.looked_up, counts.held, counts.paid) == (2, 1, 1)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("triage", "triage"),
        ("triage", "handoff"),
        ("resolver", "checkpoint"),
        ("resolver", "lookup"),
        ("resolver", "policy"),
        ("resolver", "asked"),
        ("resolver", "approved"),
        ("billing", "ledger:started"),
        ("billing", "paid"),
        ("billing", "ledger:done"),
        ("billing", "reply"),
        ("billing", "closed"),
    ],
)
async def test_killed_at_a_step_the_refund_is_paid_once(support: SupportDesk, name: str, at: str) -> None:
    ticket = await support.run("duplicate", kill=name, at=at)
    counts = support.counts(ticket)
    assert (counts.asked, counts.replied, counts.paid) == (1, 1, 1)
    assert counts.held <= 1
    assert [e["agent"] for e in support.events() if e["kind"] == "killed"][-1] == name


async def test_declined_while_the_resolver_dies_nothing_is_paid(support: SupportDesk) -> None:
    ticket = await support.run("duplicate", kill="resolver", at="declined", answer="decline")
    counts = support.counts(ticket)
    assert (counts.paid, counts.replied) == (0, 1)


# -- billing's two gaps


async def test_killed_after_done_the_ledger_is_enough_with_any_bank(support: SupportDesk) -> None:
    await support.use_bank("forgetful")
    counts = support.counts(await support.run("duplicate", kill="billing", at="ledger:done"))
    await support.use_bank("keyed")
    assert (counts.bank_asked, counts.paid) == (1, 1)


async def test_killed_between_payment_and_done_the_banks_key_is_what_saves_it(support: SupportDesk) -> None:
    keyed = support.counts(await support.run("duplicate", kill="billing", at="paid"))
    await support.use_bank("forgetful")
    forgetful = support.counts(await support.run("duplicate", kill="billing", at="paid"))
    await support.use_bank("keyed")
    assert (keyed.bank_asked, keyed.paid) == (2, 1)
    assert (forgetful.bank_asked, forgetful.paid) == (2, 2)


# -- the same agents without the pattern


async def test_the_baseline_starts_over(support: SupportDesk) -> None:
    await support.use_baseline("resolver")
    held = support.counts(await support.run("duplicate", kill="resolver", at="holding"))
    asked = support.counts(await support.run("duplicate", kill="resolver", at="asked"))
    await support.use_shipped("resolver")
    assert (held.looked_up, held.held, held.paid) == (2, 2, 1)
    assert (asked.looked_up, asked.held, asked.asked_raw) == (2, 2, 2)


async def test_what_was_run_is_acknowledged(support: SupportDesk) -> None:
    await support.use_baseline("billing")
    await support.use_bank("forgetful")
    tickets = []
    for _ in range(4):  # a restart before the acknowledgement would pay again
        tickets.append(await support.run("duplicate", timeout=15))
        await support.restart("billing")
    await support.run("question")
    await support.use_shipped("billing")
    await support.use_bank("keyed")
    assert [support.counts(ticket).paid for ticket in tickets] == [1] * 4


async def test_who_has_acknowledged_nothing_of_a_ticket_yet_is_behind(
    support: SupportDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = await support.run("question")
    assert await support.behind(ticket) == []
    own, group = support.lane.partition(ticket), support.group

    async def elsewhere(name: str) -> list[Offset]:
        offsets = await group(name)
        return [offset for offset in offsets if offset.partition != own] if name == "billing" else offsets

    monkeypatch.setattr(support, "group", elsewhere)
    assert await support.behind(ticket) == ["billing"]


async def test_the_place_to_die_is_for_the_ticket_that_was_opened(support: SupportDesk) -> None:
    before = await support.run("duplicate", answer=None)
    await support.restart("billing", die_at="paid")  # holds still there, as one that is about to be killed
    await support.approve(before)
    await support.until(before, "paid")
    try:  # the one before is redelivered, and passes the place where the new one is to die
        ticket = await support.run("duplicate", kill="billing", at="reply")
        await support.until(before, "closed")
        assert await support.laser.kv("breaks").get(f"{ticket}:reply")
        assert await support.laser.kv("breaks").get(f"{before}:reply") is None
        assert (support.counts(ticket).paid, support.counts(before).paid) == (1, 1)
    finally:
        await support.restart("billing", die_at="")


async def test_the_baseline_of_billing_pays_twice_at_a_forgetful_bank(support: SupportDesk) -> None:
    await support.restart("billing", baseline="1", bank="forgetful")
    counts = support.counts(await support.run("duplicate", kill="billing", at="reply"))
    await support.restart("billing", baseline="", bank="")
    assert (counts.bank_asked, counts.paid) == (2, 2)


# -- people


async def test_the_first_of_two_people_decides(support: SupportDesk) -> None:
    ticket = await support.run("duplicate", answer=None)
    await support.approve(ticket, by="ann")
    await support.decline(ticket, by="bo")
    late = await support.until(ticket, "late_answer")
    await support.until(ticket, "closed")
    assert (late["by"], late["text"]) == ("bo", "approved by ann before")
    assert {e["kind"] for e in support.events(ticket)} & {"approved", "declined"} == {"approved"}
    assert support.counts(ticket).paid == 1


async def test_answering_twice_is_answering_once(support: SupportDesk) -> None:
    ticket = await support.run("duplicate", answer=None)
    await asyncio.gather(*(support.approve(ticket) for _ in range(3)))
    await support.until(ticket, "closed")
    assert (support.counts(ticket).paid, support.counts(ticket).bank_asked) == (1, 1)


async def test_an_answer_given_while_the_resolver_is_down_is_not_lost(support: SupportDesk) -> None:
    await support.restart("resolver", hang_after="600")  # the watchdog is not to end it before it is killed
    ticket = await support.run("duplicate", answer=None)
    os.kill(support.processes["resolver"].pid, signal.SIGSTOP)  # as good as dead: it cannot take the answer
    await support.approve(ticket)
    marker = await support.open_ticket("empty")  # later than the answer, and triage alone closes it
    await support.until(marker, "closed")
    assert [question.ticket for question in support.waiting()] == [ticket]
    await support.kill("resolver")
    await support.until(ticket, "closed")
    counts = support.counts(
        ticket
    )  # stopped before it acknowledged, the resolver asks again under the same key
    await support.restart("resolver", hang_after="")
    assert (counts.asked, counts.paid) == (1, 1)


async def test_nobody_answering_leaves_the_ticket_waiting_in_sight(support: SupportDesk) -> None:
    ticket = await support.run("duplicate", answer=None)
    other = await support.run("duplicate")  # a parked ticket holds nobody up
    await support.kill("resolver")
    assert await support.until(other, "closed")
    (question,) = support.waiting()
    assert (question.ticket, question.cents) == (
        ticket,
        support.bank.payments()[-1].cents,
    ) or question.cents > 0
    await support.approve(ticket)
    await support.until(ticket, "closed")
    assert support.waiting() == []


async def test_only_what_was_asked_can_be_answered(support: SupportDesk) -> None:
    ticket = await support.run("question")
    with pytest.raises(DeskError, match=f"{ticket} asks nothing"):
        await support.approve(ticket)


# -- chaos


def killed(support: SupportDesk) -> list[Event]:
    return [e for e in support.events() if e["kind"] == "killed"]


async def end_chaos(support: SupportDesk, kills: int) -> None:
    """After so many: on a machine too busy to start an agent between two of them, nothing would ever be done."""
    enough = asyncio.Event()
    remove = support.listen(lambda _new: enough.set() if len(killed(support)) >= kills else None)
    await enough.wait()
    remove()
    await support.chaos(False)


async def test_under_chaos_everything_closes_once(support: SupportDesk) -> None:
    before = len(killed(support))
    await support.chaos(True, every=0.25, seed=3)
    ending = asyncio.create_task(end_chaos(support, before + 60))
    tickets = await support.run_many(["duplicate"] * 8 + ["question", "two_issues", "not_due", "empty"])
    ending.cancel()
    await support.chaos(False)
    kills = killed(support)[before:]
    assert kills and all(kill["by"] == "chaos" for kill in kills)
    for ticket in tickets:
        counts = support.counts(ticket)
        closed = {e["id"] for e in support.events(ticket) if e["kind"] == "closed"}
        assert len(closed) == 1 and counts.paid == counts.asked <= 1
    assert not [e for e in support.events() if e["kind"] == "dead_letter"]


# -- the stack


async def test_the_stack_may_be_killed_too(support: SupportDesk) -> None:
    ticket = await support.open_ticket("duplicate")
    await support.kill("stack")
    await support.until(ticket, "asked")
    await support.kill("stack")
    await support.approve(ticket)
    await support.until(ticket, "closed")
    counts = support.counts(ticket)
    assert (counts.replied, counts.paid) == (1, 1)
    assert not [e for e in support.events() if e["kind"] == "dead_letter"]
