"""Every kind of ticket ends as it should, told once, paid once or not at all."""

import json

import laser_sdk as ls
import pytest

from desk.control import DeskError
from desk.control.support import SupportDesk
from desk.support import world
from desk.support.agent import LANE, PARTITIONS
from desk.support.tickets import SCENARIOS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_scenario_ends_as_it_says(support: SupportDesk, scenario: str) -> None:
    ticket = await support.run(scenario)
    told = SCENARIOS[scenario]
    outcomes = {e["step"]: e["state"] for e in support.events(ticket) if e["kind"] == "closed"}
    assert len(outcomes) == 1
    counts = support.counts(ticket)
    assert counts.replied_raw == told.issues
    assert counts.paid == counts.bank_asked == counts.asked_raw == (told.outcome == "refunded")
    issues = [e["step"] for e in support.events(ticket) if e["kind"] == "lookup"]
    assert len(set(issues)) == len(issues) == (0 if told.outcome == "unclear" else told.issues)
    if told.issues == 1:
        assert list(outcomes.values()) == [told.outcome]


async def test_two_issues_are_two_handoffs_with_keys_apart(support: SupportDesk) -> None:
    ticket = await support.run("two_issues", answer="decline")
    handoffs = [e["state"] for e in support.events(ticket) if e["kind"] == "handoff"]
    assert handoffs == [f"{ticket}:resolve-1", f"{ticket}:resolve-2"]
    checkpoints = [e["step"] for e in support.events(ticket) if e["kind"] == "checkpoint"]
    assert sorted(checkpoints) == handoffs


async def test_the_answer_to_a_question_cites_its_sources(support: SupportDesk) -> None:
    ticket = await support.run("question")
    reply = await support.until(ticket, "reply")
    assert all(source in reply["text"] for source in ("[kb-delivery]", "[order 1051]", "[history c-3]"))


async def test_a_refund_goes_to_whoever_paid_signed_in_or_not(support: SupportDesk) -> None:
    words = "Order 1300 was charged twice, please refund one"
    ticket = await support.open_ticket(words, customer="")
    asked = await support.until(ticket, "asked", "closed")
    assert asked["kind"] == "asked"
    assert asked["customer"] == world.load().orders["1300"]["customer"] != ""
    await support.decline(ticket)
    await support.until(ticket, "closed")


async def test_the_same_charge_in_a_second_ticket_is_not_paid_again(support: SupportDesk) -> None:
    words = "The scale of order 1104 was charged twice, please refund one."
    first = await support.run(words)
    second = await support.run(words)
    assert (support.counts(first).paid, support.counts(second).paid) == (1, 0)
    assert first in (await support.until(second, "reply"))["text"]


async def test_a_ticket_sent_again_after_its_agents_were_replaced_is_not_worked_twice(
    support: SupportDesk,
) -> None:
    ticket = await support.run("duplicate")
    before = support.counts(ticket)
    for name in ("triage", "resolver", "billing"):
        await support.restart(name)
    await support.send(ticket)
    seen = len(support.events())
    marker = await support.run(
        "question"
    )  # same agents, later work: whatever the copy led to may be over too
    await support.until(marker, "closed")
    assert len(support.events()) > seen
    assert support.counts(ticket).replied_raw == before.replied_raw == 1
    assert support.counts(ticket).paid == support.counts(ticket).bank_asked == 1
    assert support.counts(ticket).looked_up == 1
    assert support.waiting() == []


@pytest.mark.parametrize("words", [1042, None, ["duplicate"], b"duplicate"])
async def test_what_is_not_text_is_refused_in_one_sentence(support: SupportDesk, words: object) -> None:
    with pytest.raises(DeskError, match="with text or one of the scenarios") as told:
        await support.open_ticket(words)
    assert "\n" not in str(told.value)


async def test_a_customer_is_an_id(support: SupportDesk) -> None:
    with pytest.raises(DeskError, match="A customer is an id such as c-17, not 17"):
        await support.open_ticket("question", customer=17)
    ticket = await support.open_ticket("Where is order 1051?", customer="c-999")
    await support.until(ticket, "closed")
    assert "no order with that number under your name" in (await support.until(ticket, "reply"))["text"]


async def test_text_that_is_not_utf8_gets_a_reply(support: SupportDesk) -> None:
    ticket = await support.run("\ud800\udfff \x00 what?")
    assert support.counts(ticket).replied_raw == 1


async def test_a_command_that_is_no_ticket_is_set_aside(support: SupportDesk) -> None:
    session = ls.derive_session_id(support.stream, "", "junk")
    for number, body in enumerate([b"\xff\xfe", b"[]", b'{"ticket": 5}']):
        await support.laser.agdx(LANE, "x", session).command(
            ls.derive_conversation_id(f"junk-{number}"), body, operation="triage", target="triage"
        )
    ticket = await support.open_ticket("question")
    await support.until(ticket, "closed")
    kinds = [event["kind"] for event in support.events()]
    assert kinds.count("unreadable") == 3


async def test_nothing_became_a_dead_letter_or_a_crash(support: SupportDesk) -> None:
    assert [e for e in support.events() if e["kind"] in ("dead_letter", "died")] == []


async def test_the_ticket_is_a_session_that_ends(support: SupportDesk) -> None:
    ticket = await support.run("duplicate")
    session = support.laser.sessions().open(support.lane.session(ticket)).as_agent("reader")
    turns = await session.turns_since(ls.Checkpoint.from_json(json.dumps({"per_topic": {}})))
    shown = [turn.display for turn in turns]
    assert shown.count("tool.call") == shown.count("tool.result") == 1 and "user.message" in shown


async def test_a_ticket_never_waits_behind_the_seven_before_it(support: SupportDesk) -> None:
    """A handler that holds delays its partition, so tickets take turns; all of one ticket stays on one partition."""
    found = []
    for _ in range(PARTITIONS):
        ticket = await support.run("not_due")
        session = support.laser.sessions().open(support.lane.session(ticket))
        turns = await session.turns_at(await session.checkpoint())
        assert len(turns) > 3
        found.append({str(turn.message.id).partition(":")[0] for turn in turns})
    assert all(len(partitions) == 1 for partitions in found)
    assert len(set.union(*found)) == PARTITIONS


async def test_the_group_has_acknowledged_everything(support: SupportDesk) -> None:
    ticket = await support.run("question")
    await support.until(ticket, "closed")
    assert all(
        offset.stored is None or offset.stored <= offset.head for offset in await support.group("resolver")
    )
    assert await support.group("resolver")
