"""Two who write one key at once or claim one charge; a question answered again, with no, or while nobody is there;
words that are other ones each time. Judges that see it go wrong.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from desk.control.errors import DeskError
from desk.control.events import Event
from desk.control.fleet import FleetDesk
from desk.control.support import SupportDesk
from desk.proving import days, sweep
from desk.proving.cases import ANSWERED, ONCE, OVERTAKEN, Case, Kill
from desk.proving.frames import Write
from desk.proving.meeting import Meeting
from desk.proving.plays import DAYS, DELIVERY, PLAYS, SUPPORT, Day, Play
from desk.proving.relay import AFTER, BEFORE, EARLY, LATE, Point
from desk.proving.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")
TWO_REFUNDS, TWO_VANS = PLAYS["two refunds"], DAYS["two vans stop"]
TOO_LATE, OTHER_WORDS = DAYS["bill answered too late"], DAYS["closure, other words"]

# What every Python of a desk runs first: a compare-and-swap that compares nothing, a first writer who does not win.
BLIND = """
import json
from desk.runtime import saved

async def blind(kv, key, change):
    value = await saved.get_json(kv, key)
    new = change(value)
    if new is None:
        return value
    await saved.put_json(kv, key, new)
    return json.loads(json.dumps(new))

saved.compare_and_swap = blind
"""
LAST = """
from desk.runtime import saved

async def last(kv, key, value):
    await saved.put_json(kv, key, value)
    return value

saved.first = last
"""
YES_TO_ALL = """
from desk.delivery import invoice

def yes(stored):
    return {**stored, "answer": "approved"} if stored and "answer" in stored else stored

def approved(read):
    async def reading(*arguments):
        return yes(await read(*arguments))
    return reading

invoice.first, invoice.get_json = approved(invoice.first), approved(invoice.get_json)
"""
NOBODYS = """
from desk.delivery import invoice

ask = invoice.Invoice.gate_or_stored

async def decided(self, ctx, incident, prompt):
    rows, asked = self.f.laser.topic("fleet.events").replay(), 0
    while some := await rows.poll():
        asked += sum(message.json()["kind"] == "asked" for message in some)
    return {"answer": "approved", "by": "person"} if asked > 1 else await ask(self, ctx, incident, prompt)

invoice.Invoice.gate_or_stored = decided
"""
UNCLAIMED = """
from desk.support import policy

policy.claimed = lambda decision, ticket: decision
"""
UNSAVED = """
from desk.support import agent

async def anew(kv, key, work):
    return await work()

agent.once = anew
"""
DONE_BEFORE_IT_IS = """
from desk.delivery import customer

notify = customer.Customer.notify

async def hasty(self, exc, outputs):
    if await customer.get_json(self.f.results, f"{exc.id}:messages"):
        van = outputs["replan"]["van"]
        await self.f.event_once("step", exc.id, "notify", van=van, state="done", text="1 customer told")
    return await notify(self, exc, outputs)

customer.Customer.notify = hasty
"""
ANSWERED_BEFORE_IT_IS_SAID = """
import asyncio, json
from desk.delivery import customer, readers

handle = customer.Customer.handle

async def hasty(self, ctx, message):
    exc = customer.exception_of(customer.body_of(message))
    done = await customer.get_json(self.f.results, f"{exc.id}:notify")
    if done is not None:
        await ctx.respond(json.dumps(done))
        while not await readers.happened(self.f.laser, "closed", exc.id):
            await asyncio.sleep(0.02)
    await handle(self, ctx, message)

customer.Customer.handle = hasty
"""
WRITTEN_ANEW = """
from desk.delivery import customer
from desk.runtime.saved import first

async def anew(kv, key, work):
    written = await work()
    await first(kv, key, written)
    return written

customer.once = anew
"""
NOTIFIED_ANEW = """
from desk.delivery import customer

read = customer.get_json

async def reading(kv, key):
    return None if key.endswith(":notify") else await read(kv, key)

customer.get_json = reading
"""
REPLANNED_ANEW = """
from desk.delivery import routing

read = routing.get_json

async def reading(kv, key):
    return None if key.endswith(":replan") else await read(kv, key)

routing.get_json = reading
"""
ASKED_ANEW = """
from desk.delivery import invoice

read, unread = invoice.get_json, [True]

async def reading(kv, key):
    return None if key.endswith("-bill") and unread and unread.pop() else await read(kv, key)

invoice.get_json = reading
"""
REPLIED_ANEW = """
from desk.support import agent

read = agent.get_json

async def reading(kv, key):
    case = await read(kv, key)
    return {**case, "issues": {}} if isinstance(case, dict) and "issues" in case else case

agent.get_json = reading
"""
QUESTION_PUT_ANEW = """
from desk.support import resolver

ask = resolver.ask_person

async def anew(desk, body, decision, since):
    await ask(desk, body, decision, ())

resolver.ask_person = anew
"""
OPENED_AT_EACH_SIGN = """
from desk.delivery import dispatch

async def unconditional(self, exc):
    await self.f.exceptions.set(exc.id).json(exc.to_json()).send()
    await self.announce(exc)
    self.start(exc)

dispatch.Dispatch.open = unconditional
"""
TOLD_TWICE = """
from desk.delivery import customer

deliver = customer.Customer.deliver

async def twice(self, stop, text, key):
    await deliver(self, stop, text, key)
    await deliver(self, stop, text, key)

customer.Customer.deliver = twice
"""
LOOKED_UP_TWICE = """
from desk.support import agent

get_order = agent.Desk.get_order

async def twice(self, number):
    await get_order(self, number)
    return await get_order(self, number)

agent.Desk.get_order = twice
"""
JOURNAL_UNREAD = """
import laser_sdk as ls
from desk.delivery import dispatch

run = dispatch.Dispatch.run

async def anew(self, exc):
    known = {**exc.to_json(), "run": ls.new_conversation_id()}
    return await run(self, dispatch.DeliveryException(**known))

dispatch.Dispatch.run = anew
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def changed(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """The desks started from now on in this test are changed so."""
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    more = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), more))))


def given_up_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket that is to close and never does is given up when nobody has anything left to do about it."""
    until = SupportDesk.until

    async def closed_or_quiet(self: SupportDesk, ticket: str, *kinds: str, timeout: float) -> Event:
        if kinds != ("closed",):
            return await until(self, ticket, *kinds, timeout=timeout)
        while await self.behind(ticket):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        raise DeskError(f"{ticket} does not close.")

    monkeypatch.setattr(SupportDesk, "until", closed_or_quiet)


def overtaken(play: Play | Day, write: Write, early: str, late: str) -> Case:
    return Case(play, (Kill(early, Point(write, 1, EARLY)), Kill(late, Point(write, 1, LATE))), OVERTAKEN)


async def test_billing_and_the_resolver_end_two_issues_of_a_ticket_at_once(stage: Stage) -> None:
    found = await sweep.points(stage, SUPPORT, [TWO_REFUNDS])
    case = Write("cas", "cases t-1")
    assert not found.cases and not found.asking
    assert found.meeting == [
        overtaken(TWO_REFUNDS, case, "billing", "resolver"),
        overtaken(TWO_REFUNDS, case, "resolver", "billing"),
    ]
    for case in found.meeting:
        row = await sweep.perform(stage, case)
        assert row.reached and row.violations == ()


async def test_two_copies_of_routing_change_the_round_of_a_third_van_at_once(stage: Stage) -> None:
    found = await sweep.points(stage, DELIVERY, [TWO_VANS])
    case = overtaken(TWO_VANS, Write("cas", "rounds van-3"), "routing-2", "routing-1")
    assert case in found.meeting
    row = await sweep.perform(stage, case)
    assert row.reached and row.violations == ()


async def test_of_two_vans_that_stop_at_once_one_stays(stage: Stage) -> None:
    play = DAYS["both vans stop"]
    row = await sweep.perform(
        stage, overtaken(play, Write("cas", "cursors roster"), "routing-1", "routing-2")
    )
    assert row.reached and row.violations == ()


async def test_the_judge_sees_that_an_ended_issue_was_overwritten(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, BLIND)
    given_up_when_quiet(monkeypatch)  # it never closes
    row = await sweep.perform(stage, overtaken(TWO_REFUNDS, Write("set", "cases t-1"), "resolver", "billing"))
    assert row.reached and "closed 0 times, 1 due" in row.violations


async def test_the_judge_sees_that_a_round_was_overwritten(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, BLIND)
    write = Write("set", "rounds van-3")
    row = await sweep.perform(stage, overtaken(TWO_VANS, write, "routing-1", "routing-2"))
    assert row.reached and any("parcels not ended once" in sentence for sentence in row.violations)


async def test_who_waits_in_vain_has_met_nobody() -> None:
    meeting = Meeting(patience=0.01)
    assert not await meeting.late() and not await meeting.early()
    late = asyncio.create_task(meeting.late())
    assert await meeting.early()
    meeting.applied()
    assert await late


async def test_a_second_answer_changes_nothing_wherever_the_first_one_is_lost(stage: Stage) -> None:
    found = await sweep.points(stage, SUPPORT, [PLAYS["answered again"]])
    assert {case.agents for case in found.cases} == {("resolver",)} and not found.asking
    first, second = (
        found.cases[0],
        next(c for c in found.cases[1:] if "cas decisions" in c.places and "#2" in c.places),
    )
    assert first.places == "resolver before cas decisions t-1:resolve-1 #1"
    for case in (first, found.cases[1], second):
        row = await sweep.perform(stage, case)
        assert row.reached and row.violations == () and row.raw["answers"] == 2


async def test_a_second_answer_about_the_bill_changes_nothing(stage: Stage) -> None:
    found = await sweep.points(stage, DELIVERY, [DAYS["bill answered again"]])
    assert {case.agents for case in found.cases} == {("invoice",)}
    row = await sweep.perform(stage, found.cases[0])
    assert found.cases[0].places == "invoice before cas decisions day-bill #1"
    assert row.reached and row.violations == ()


async def test_the_judge_sees_that_the_last_answer_was_done(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, LAST)
    kill = Kill("resolver", Point(Write("send", "desk.events"), 9, AFTER))
    row = await sweep.perform(stage, Case(PLAYS["answered again"], (kill,)))
    assert row.reached and any("the first answer to t-1:resolve-1" in v for v in row.violations)


async def test_of_one_charge_in_two_tickets_the_second_is_told_no(stage: Stage) -> None:
    found = await sweep.points(stage, SUPPORT, [PLAYS["claimed twice"]])
    assert found.cases[1].places == "resolver after cas claims 1043:duplicate #2" and not found.asking
    assert {case.agents for case in found.cases} == {("resolver",)}
    for case in found.cases[:2]:
        row = await sweep.perform(stage, case)
        assert row.reached and row.violations == () and row.raw["closed"] == 2 and row.raw["paid"] == 1


async def test_the_judge_sees_that_one_charge_is_refunded_in_two_tickets(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, UNCLAIMED)
    given_up_when_quiet(monkeypatch)  # the second asks, and waits
    kill = Kill("resolver", Point(Write("cas", "claims 1043:duplicate"), 2, AFTER))
    row = await sweep.perform(stage, Case(PLAYS["claimed twice"], (kill,)))
    assert row.reached and "2 questions, 1 due" in row.violations


async def test_a_reply_is_in_the_words_that_were_written_first(stage: Stage) -> None:
    found = await sweep.points(stage, SUPPORT, [PLAYS["other words"]])
    assert found.cases[3].places == "billing after send agent.sessions #1"
    row = await sweep.perform(stage, found.cases[3])
    assert row.reached and row.violations == () and row.raw["replies"] == 2


async def test_the_judge_sees_that_a_reply_was_written_anew(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, UNSAVED)
    kill = Kill("billing", Point(Write("send", "agent.sessions"), 1, AFTER))
    row = await sweep.perform(stage, Case(PLAYS["other words"], (kill,)))
    assert row.reached and "one reply in two wordings" in row.violations


async def test_customers_are_told_in_the_words_that_were_written_first(stage: Stage) -> None:
    found = await sweep.points(stage, DELIVERY, [OTHER_WORDS])
    assert [case.places for case in found.cases[:2]] == [
        "customer before cas results day-1:messages #1",
        "customer after cas results day-1:messages #1",
    ]
    assert {case.agents for case in found.cases} == {("customer",)} and not found.asking
    told = next(case for case in found.cases if case.places == "customer before send fleet.events #4")
    row = await sweep.perform(stage, told)
    assert row.reached and row.violations == () and row.raw["told"] == 6


async def test_the_judge_sees_that_customers_were_written_to_anew(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, WRITTEN_ANEW)
    kill = Kill("customer", Point(Write("send", "fleet.events"), 4, BEFORE))
    row = await sweep.perform(stage, Case(OTHER_WORDS, (kill,)))
    assert row.reached and "told in two wordings" in row.violations


@pytest.mark.parametrize(
    ("play", "first"),
    [
        ("bill declined", "invoice before send fleet.events #4"),
        ("bill declined, then approved", "invoice before cas decisions day-bill #1"),
    ],
)
async def test_a_declined_bill_is_paid_wherever_the_no_is_lost(stage: Stage, play: str, first: str) -> None:
    found = await sweep.points(stage, DELIVERY, [DAYS[play]])
    assert found.cases[0].places == first and {case.agents for case in found.cases} == {("invoice",)}
    for case in [found.cases[1], *found.asking[:1]]:
        row = await sweep.perform(stage, case)
        assert row.reached and row.violations == () and row.raw["disputes"] == 1
    assert [case.places for case in found.asking[:1]] == ["invoice after send fleet.events #4"] * (
        play == "bill declined"
    )


async def test_the_judge_sees_that_a_no_was_taken_for_a_yes(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, YES_TO_ALL)
    kill = Kill("invoice", Point(Write("cas", "decisions day-bill"), 1, AFTER))
    row = await sweep.perform(stage, Case(DAYS["bill declined"], (kill,)))
    assert row.reached
    assert "['disputed'] came of what a person said: ['declined']" in row.violations


@pytest.mark.parametrize(
    ("write", "number"), [(Write("send", "fleet.events"), 4), (Write("send", "agent.sessions"), 2)]
)
async def test_the_judge_sees_that_who_had_asked_before_took_it_for_a_yes(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, number: int
) -> None:
    changed(tmp_path, monkeypatch, NOBODYS)
    row = await sweep.perform(
        stage, Case(DAYS["bill declined"], (Kill("invoice", Point(write, number, AFTER)),))
    )
    assert row.reached and "decided ['approved'], a person said ['declined']" in row.violations


async def test_a_bill_about_which_nobody_answers_in_time_is_not_disputed_wherever_that_is_lost(
    stage: Stage,
) -> None:
    found = await sweep.points(stage, DELIVERY, [TOO_LATE])
    assert found.cases[0].places == "invoice before send fleet.events #4" and not found.asking
    assert {case.agents for case in found.cases} == {("invoice",)}
    decided = next(case for case in found.cases if "after cas decisions" in case.places)
    for case in [found.cases[1], decided]:
        row = await sweep.perform(stage, case)
        assert row.reached and row.violations == () and row.raw["disputes"] == 1


@pytest.mark.parametrize(
    ("code", "write", "number", "sentence"),
    [
        (NOBODYS, Write("send", "fleet.events"), 4, "decided ['approved'], a person said ['undecided']"),
        (NOBODYS, Write("send", "fleet.events"), 4, "decided by ['person'], nobody due"),
        (
            YES_TO_ALL,
            Write("cas", "decisions day-bill"),
            1,
            "['disputed'] came of what a person said: ['undecided']",
        ),
    ],
)
async def test_the_judge_sees_that_silence_was_taken_for_a_yes(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    write: Write,
    number: int,
    sentence: str,
) -> None:
    async def silent(fleet: FleetDesk, play: Day) -> None: ...

    changed(tmp_path, monkeypatch, code)
    monkeypatch.setattr(days, "_say_too_late", silent)  # it would wait until nobody can answer any more
    row = await sweep.perform(stage, Case(TOO_LATE, (Kill("invoice", Point(write, number, AFTER)),)))
    assert row.reached and sentence in row.violations


async def test_an_answer_that_is_taken_too_late_is_a_violation(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def taken(fleet: FleetDesk, play: Day) -> None: ...

    monkeypatch.setattr(days, "_say", taken)
    done = await days.perform(stage, Case(TOO_LATE))
    assert done.row.violations == ("An answer was taken that came too late.",)


@pytest.mark.parametrize(
    ("code", "saved", "sentence"),
    [
        (DONE_BEFORE_IT_IS, "messages", "step notify before told notify"),
        (ANSWERED_BEFORE_IT_IS_SAID, "notify", "closed before step notify"),
    ],
)
async def test_the_judge_sees_that_the_log_of_a_day_is_out_of_order(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, saved: str, sentence: str
) -> None:
    changed(tmp_path, monkeypatch, code)
    kill = Kill("customer", Point(Write("cas", f"results day-1:{saved}"), 1, AFTER))
    row = await sweep.perform(stage, Case(DAYS["nobody home"], (kill,)))
    assert row.reached and [v.partition(": ")[2] for v in row.violations] == [sentence]


async def test_the_judge_sees_that_a_workflow_did_not_go_on_from_its_journal(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(DAYS["nobody home"], (Kill("dispatch", Point(Write("send", "desk.inbox"), 2, AFTER)),))
    honest = await sweep.perform(stage, case)
    assert (
        honest.reached and honest.violations == () and honest.raw["messages"] <= 5
    )  # the one in hand, again
    changed(tmp_path, monkeypatch, JOURNAL_UNREAD)
    row = await sweep.perform(stage, case)
    assert row.reached
    [said] = row.violations
    assert said.startswith("assess of p") and said.endswith("was asked for again although the journal had it")


@pytest.mark.parametrize(
    ("code", "play", "agent", "write", "sentence"),
    [
        (NOTIFIED_ANEW, "closure", "customer", Write("send", "agent.sessions"), "told notify of"),
        (REPLANNED_ANEW, "closure", "routing-2", Write("send", "agent.sessions"), "start replan of"),
        (
            ASKED_ANEW,
            "overbilled",
            "invoice",
            Write("cas", "results day-bill:check"),
            "asked invoice-check of",
        ),
    ],
)
async def test_the_judge_sees_that_what_was_over_was_done_again(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    play: str,
    agent: str,
    write: Write,
    sentence: str,
) -> None:
    changed(tmp_path, monkeypatch, code)
    row = await sweep.perform(stage, Case(DAYS[play], (Kill(agent, Point(write, 1, BEFORE)),)))
    assert row.reached and any(said.startswith(sentence) for said in row.violations)


@pytest.mark.parametrize(
    ("code", "agent", "number", "sentence"),
    [
        (
            QUESTION_PUT_ANEW,
            "resolver",
            8,
            "t-1:resolve-1:approve was put again although it was in the session",
        ),
        (REPLIED_ANEW, "billing", 7, "a reply in t-1 by a process that came when that was closed"),
    ],
)
async def test_the_judge_sees_that_a_question_or_a_reply_was_sent_again(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    agent: str,
    number: int,
    sentence: str,
) -> None:
    case = Case(PLAYS["duplicate"], (Kill(agent, Point(Write("send", "desk.events"), number, BEFORE)),))
    honest = await sweep.perform(stage, case)
    assert honest.reached and honest.violations == ()
    changed(tmp_path, monkeypatch, code)
    row = await sweep.perform(stage, case)
    assert row.reached and row.violations == (sentence,)


@pytest.mark.parametrize(
    ("code", "play", "sentence"),
    [
        # how far the second workflow comes by itself is a race; that it begins is not
        (OPENED_AT_EACH_SIGN, DAYS["closure"], r"messages \d+ times for 4"),
        (TOLD_TWICE, DAYS["closure"], "told 10 times for 5"),
        (LOOKED_UP_TWICE, PLAYS["duplicate"], "lookups 2 times for 1"),
    ],
)
async def test_the_judge_sees_that_something_is_done_twice_though_nobody_is_killed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, play: Play | Day, sentence: str
) -> None:
    changed(tmp_path, monkeypatch, code)
    done = await sweep._PERFORM[play.desk](stage, Case(play))
    assert done.row.violations == () and any(re.fullmatch(sentence, said) for said in done.repeated)


async def test_an_answer_that_could_not_be_given_is_a_violation(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = days._say

    async def in_vain(fleet: FleetDesk, play: Day) -> None:
        await say(fleet, play)
        raise DeskError("Nobody heard the second answer.")

    monkeypatch.setattr(days, "_say", in_vain)
    done = await days.perform(stage, Case(DAYS["bill declined"]))
    assert done.row.violations == ("Nobody heard the second answer.",)


async def test_answered_while_dead_is_tried_from_where_a_person_knows_and_on(stage: Stage) -> None:
    found = await sweep.points(stage, SUPPORT, [PLAYS["duplicate"]])
    assert [case.places for case in found.asking] == [
        "resolver after send desk.events #7",  # asked
        "resolver before send desk.events #8",  # done
        "resolver after send desk.events #8",
        "resolver before acknowledge agent.sessions #3",
        "resolver after acknowledge agent.sessions #3",
    ]
    row = await sweep.perform(stage, found.asking[0])
    assert row.reached and row.violations == () and row.raw["answers"] == 1


async def test_a_point_before_the_question_is_not_reached(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desk.proving.sweep._TRIES", 1)
    kill = Kill("resolver", Point(Write("send", "desk.events"), 7, BEFORE))
    row = await sweep.perform(stage, Case(PLAYS["duplicate"], (kill,), ANSWERED))
    assert not row.reached and row.violations == ()
    assert (await sweep.perform(stage, Case(PLAYS["duplicate"], (kill,), ONCE))).reached
