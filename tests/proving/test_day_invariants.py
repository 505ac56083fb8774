"""The judge of delivery days: an honest day's records pass, each doctored one is named."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from desk.proving import day_invariants
from desk.proving.day_invariants import Day, verdict
from tests.proving.sentences import unheard

RUN = {"stream": "fleet-d1", "disputes": 1, "answer": "approved", "expected": None}
BILL, MISSED = "d1-bill", "d1-1"
HELD, PAID = "$19.35 held back, as decided", "paid as billed, as decided"
TEXT = "Hello Ada, we called at 09:06 and nobody was home. Expect your parcel 10:00 to 11:00."
LATER = " Sorry, this is the third time we've been late to you, and we've flagged it."


def event(name: str, kind: str, agent: str = "agent", pid: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "kind": kind,
        "agent": agent,
        "pid": pid,
        "van": None,
        "stop": None,
        "minute": 6.0,
        "at": 5.0,
        **fields,
    }


def life(name: str, agent: str, pid: int, at: float = 1.0) -> dict[str, Any]:
    return {"id": name, "kind": "agent_up", "agent": agent, "pid": pid, "at": at}


def report(minute: float, metres: float, van: str = "van-1") -> dict[str, Any]:
    return {"van": van, "minute": minute, "metres": metres, "status": "driving"}


PLANNING = {"agent": "routing-1", "incident": MISSED, "step": "replan"}
CHECKING = {"agent": "invoice", "incident": BILL, "step": "invoice-check"}
PROBLEM = event("e-0", "failed", "simulator", incident=MISSED, van="van-1", stop="s-1")
OPENED = event("e-1", "exception", "dispatch", incident=MISSED)
STARTED = event("e-2", "start", **PLANNING)
PLANNED = event("e-3", "checkpoint", **PLANNING)
HOLDING = event("e-4", "holding", **PLANNING)
STEP = event("e-5", "step", **PLANNING, state="done", text="moved to the end of the round")
TOLD = event("e-7", "told", "customer", incident=MISSED, step="notify", stop="s-1", text=TEXT)
START_NOTIFY = event("e-6", "start", "customer", incident=MISSED, step="notify")
TOLD_TOO = {**TOLD, "id": "e-7b", "stop": "s-2"}
STEP_NOTIFY = event("e-8", "step", "customer", incident=MISSED, step="notify", state="done")
CLOSED = event("e-9", "closed", "dispatch", incident=MISSED)
DELIVERED = event("e-a", "delivered", "simulator", van="van-1", stop="s-1", minute=90.0)
SHOWN = event("e-d", "fork", **CHECKING, text="1 row on bill-d1-bill.")
ASKED = event("e-e", "asked", **CHECKING, hold=1935)
OVER = event("e-f", "disputed", "invoice", incident=BILL, by="person", text=HELD)
CHECKED = event("e-h", "step", **CHECKING, state="done")
CLOSED_BILL = event("e-i", "closed", "dispatch", incident=BILL)
HONEST = Day(
    everything=(
        life("l-1", "dispatch", 1),
        life("l-2", "simulator", 1),
        PROBLEM,
        OPENED,
        STARTED,
        PLANNED,
        HOLDING,
        STEP,
        START_NOTIFY,
        TOLD,
        STEP_NOTIFY,
        CLOSED,
        DELIVERED,
        event("e-b", "bill", "simulator", incident=BILL, bill={"total": 12345}),
        event("e-g", "exception", "dispatch", incident=BILL),
        event("e-c", "start", **CHECKING),
        SHOWN,
        ASKED,
        OVER,
        CHECKED,
        CLOSED_BILL,
    ),
    dead=0,
    rounds={"van-1": {"applied": [MISSED], "drops": [], "retry": [], "back": []}},
    exceptions={
        MISSED: {"kind": "missed", "run": "01M8", "state": "closed"},
        BILL: {"kind": "bill", "run": "01M9", "state": "closed"},
    },
    stops={"s-1": {"state": "delivered", "van": "van-1"}},
    parked={},
    results={
        f"{MISSED}:messages": [{"customer": "c-1", "text": TEXT}],
        f"{BILL}:check": {"outcome": "disputed", "by": "person", "hold": 1935},
    },
    decisions={BILL: {"answer": "approved", "by": "person"}},
    faults={},
    cursors={"roster": {"driving": ["van-1"], "left": {}}, "dispatch": {"fleet.events": [20]}},
    positions=(report(0.0, 0.0), report(0.36, 120.0), report(0.72, 240.0)),
    memories=(("m-1", "c-1", MISSED, "missed drop"),),
    forks=(),
    commands=(
        ("01M8", MISSED, "replan", 10.0),
        ("01M8", MISSED, "notify", 12.0),
        ("", BILL, "", 14.0),
    ),
    journal=(("01M8", "replan", 11.0), ("01M8", "notify", 13.0)),
    views={
        "delivered": Counter({("van-1", "s-1"): 1}),
        "failed": Counter({("van-1", "s-1"): 1}),
        "returned": Counter(),
    },
)
EXPECTED = verdict(RUN, HONEST)["outcome"]


def violations(found: Day, **run: Any) -> list[str]:
    return verdict({**RUN, "expected": EXPECTED, **run}, found)["violations"]


def also(*events: dict[str, Any]) -> Day:
    return replace(HONEST, everything=(*HONEST.everything, *events))


def without(*events: dict[str, Any], found: Day = HONEST) -> Day:
    return replace(found, everything=tuple(e for e in found.everything if e not in events))


def instead(old: dict[str, Any], *new: dict[str, Any]) -> Day:
    at = HONEST.everything.index(old)
    return replace(HONEST, everything=(*HONEST.everything[:at], *new, *HONEST.everything[at + 1 :]))


def sooner(this: dict[str, Any], than: dict[str, Any]) -> Day:
    """What came later is on the log right before something else."""
    rest = [event for event in HONEST.everything if event != this]
    at = rest.index(than)
    return replace(HONEST, everything=(*rest[:at], this, *rest[at:]))


def asked_again(found: Day, at: float, run: str = "01M8") -> Day:
    """The plan is asked for once more."""
    return replace(found, commands=(*found.commands, (run, MISSED, "replan", at)))


def turned(kind: str = "paid", text: str = PAID, outcome: str = "paid", hold: int = 0) -> Day:
    """A day whose bill ended otherwise than a person said."""
    check = {"outcome": outcome, "by": "person", "hold": hold}
    results = {**HONEST.results, f"{BILL}:check": check}
    return replace(instead(OVER, {**OVER, "kind": kind, "text": text}), results=results)


AGAIN = {"pid": 2}
"""What the process does that takes a killed one's place."""
STARTED_AGAIN = {**STARTED, "id": "x-1", **AGAIN}
REPLAYED = event("x-2", "replay", **PLANNING, **AGAIN)
STEP_AGAIN = {**STEP, **AGAIN}
DISPATCH_AGAIN, SIMULATOR_AGAIN = life("x-3", "dispatch", 2), life("x-4", "simulator", 2)
SOONER_UP, LATER_UP = life("x-a", "agent", 2, at=4.9), life("x-a", "agent", 2, at=5.1)
LATE = {**AGAIN, "id": "x-b", "at": 5.2}
STARTED_LATE, NOTIFY_LATE, ASKED_LATE = {**STARTED, **LATE}, {**START_NOTIFY, **LATE}, {**ASKED, **LATE}
REFUSED = {**STEP, "state": "refused"}
RESUMED = event("x-5", "resume", "dispatch", **AGAIN, incident=MISSED, at=11.5)
RETRIED = event("x-7", "retry", "dispatch", incident=MISSED, at=11.5)
SIMULATOR_DIED = {"id": "x-6", "kind": "died", "agent": "simulator", "pid": 1}
RESUMED_DAY = instead(CLOSED, DISPATCH_AGAIN, RESUMED, {**CLOSED, **AGAIN})
GAP = (report(0.0, 0.0), report(1.44, 480.0), report(0.72, 240.0))
REPLACED = instead(STEP, SIMULATOR_DIED, SIMULATOR_AGAIN, STEP)


@pytest.mark.parametrize(
    "found",
    [
        HONEST,
        also(TOLD),
        replace(HONEST, memories=HONEST.memories * 2),  # killed before the messages were saved: the same memory
        instead(STEP, STARTED_AGAIN, REPLAYED, STEP_AGAIN),  # killed while holding
        without(PLANNED, HOLDING, found=instead(STEP, STARTED_AGAIN, REPLAYED, STEP_AGAIN)),  # before it said so
        without(HOLDING),  # a day without pauses
        instead(STEP, STEP_AGAIN),  # between the result and its event
        RESUMED_DAY,
        asked_again(RESUMED_DAY, 10.5),  # killed before the journal had it
        asked_again(RESUMED_DAY, 11.2),  # stopped after it had looked into the journal, and continued
        asked_again(HONEST, 11.9),
        replace(asked_again(HONEST, 10.9), journal=(*HONEST.journal, ("01M8", "replan", 15.0))),  # recorded twice
        instead(OPENED, DISPATCH_AGAIN, OPENED),  # dispatch died with nothing open
        also(STARTED_AGAIN),  # stopped before it could say that it began, and continued
        instead(CLOSED, CLOSED, {**TOLD, **AGAIN}),  # told again by one who did not know
        also(SOONER_UP, STARTED_LATE),  # stopped after it had looked for the result, and continued
        also(LATER_UP, {**NOTIFY_LATE, "at": 4.8}),  # a frame that was held back
        instead(OVER, {**SHOWN, "id": "x", **AGAIN}, OVER),  # checked again, after the answer was stored
        replace(REPLACED, positions=(report(0.0, 0.0), report(0.72, 240.0))),  # killed with reports in hand
        replace(instead(STEP, SIMULATOR_AGAIN, STEP), positions=(*HONEST.positions, report(0.36, 120.0))),  # overtaken
    ],
)  # fmt: skip
def test_what_a_kill_may_repeat_or_leave_out_is_no_violation(found: Day) -> None:
    assert violations(found) == []


def test_repeats_are_counted() -> None:
    assert verdict(RUN, also(TOLD))["raw"]["told"] == 2
    assert verdict(RUN, asked_again(HONEST, 11.9))["raw"]["messages"] == 4
    assert verdict(RUN, replace(HONEST, memories=HONEST.memories * 2))["raw"]["remembered"] == 2


DIED = {"id": "x-8", "kind": "died", "agent": "customer", "pid": 1}
LOST = event("x-9", "dead_letter", "routing-1")


@pytest.mark.parametrize(
    ("found", "repeated"),
    [
        (HONEST, []),
        (also(TOLD), ["told 2 times for 1"]),
        (also(TOLD_TOO), []),  # another customer
        (asked_again(HONEST, 11.9), ["messages 4 times for 3"]),
        (replace(HONEST, memories=HONEST.memories * 2), ["remembered 2 times for 1"]),
        (also(DELIVERED), ["parcels 2 times for 1"]),
        (also(DIED, TOLD), []),
        (also(RETRIED, TOLD), []),
        (also(RETRIED, {**OVER, "id": "x"}), ["disputes 2 times for 1"]),
        (also(LOST, TOLD), []),  # whose it was, nobody knows
    ],
)
def test_what_is_done_twice_is_told_where_nobody_died_or_tried_again(found: Day, repeated: list[str]) -> None:
    assert verdict(RUN, found)["repeated"] == repeated


def test_what_a_day_came_to_names_neither_the_day_nor_its_runs() -> None:
    other = {"driving": ["van-1"], "left": {}}
    assert EXPECTED["roster"] == [other] and EXPECTED["memories"] == [["c-1", "day-1", "missed drop"]]
    assert EXPECTED["exceptions"][0] == ["day-1", {"kind": "missed", "run": "", "state": "closed"}]
    assert not any("d1" in str(what) or "01M8" in str(what) for what in EXPECTED.values())


def test_how_late_a_customer_was_served_on_other_days_of_the_stack_is_not_this_days_outcome() -> None:
    text = TEXT + LATER
    messages = {**HONEST.results, f"{MISSED}:messages": [{"customer": "c-1", "text": text}]}
    assert violations(replace(instead(TOLD, {**TOLD, "text": text}), results=messages)) == []


def test_who_did_a_step_of_routing_and_when_is_timing() -> None:
    assert violations(instead(STEP, {**STEP, "minute": 7.5})) == []
    assert "on the log too" in " ".join(violations(instead(DELIVERED, {**DELIVERED, "minute": 91.0})))


@pytest.mark.parametrize("found", [turned(), turned("disputed", HELD), turned(outcome="disputed", hold=1935)])
def test_an_answer_turned_round_is_seen_without_another_day(found: Day) -> None:
    said = violations(found, expected=None)
    assert any(v.endswith("came of what a person said: ['approved']") for v in said)


@pytest.mark.parametrize("answer", ["declined", "undecided"])
def test_an_answer_nobody_gave_is_seen(answer: str) -> None:
    found = replace(HONEST, decisions={BILL: {"answer": answer, "by": "person"}})
    assert violations(found, expected=None) == [f"decided ['{answer}'], a person said ['approved']"]


def test_a_bill_that_nobody_answers_about_in_time_is_undecided_by_nobody_and_paid() -> None:
    over = {**OVER, "kind": "undecided", "text": "undecided, not disputed", "by": "nobody"}
    check = {"outcome": "undecided", "by": "nobody", "hold": 0}
    found = replace(
        instead(OVER, over),
        decisions={BILL: {"answer": "undecided", "by": "nobody"}},
        results={**HONEST.results, f"{BILL}:check": check},
    )
    assert violations(found, answer="undecided", expected=None) == []
    held = replace(found, results={**HONEST.results, f"{BILL}:check": {**check, "hold": 1935}})
    assert violations(held, answer="undecided", expected=None) == ["1935 held back, [0] due"]
    by_somebody = replace(found, decisions={BILL: {"answer": "undecided", "by": "person"}})
    said = violations(by_somebody, answer="undecided", expected=None)
    assert said == ["decided by ['nobody', 'person'], nobody due"]


def test_what_was_refused_may_be_done_again() -> None:
    assert violations(instead(STEP, REFUSED, LATER_UP, STARTED_LATE), expected=None) == []


def test_a_day_without_a_dispute_needs_no_person() -> None:
    agrees = {**HONEST.results, f"{BILL}:check": {"outcome": "agrees", "hold": 0}}
    quiet = replace(without(SHOWN, ASKED, OVER), decisions={}, results=agrees)
    assert violations(quiet, disputes=0, expected=None) == []


ROUND = HONEST.rounds["van-1"]
OPEN = {**HONEST.exceptions, MISSED: {**HONEST.exceptions[MISSED], "state": "open"}}
TWICE = {"van-1": {**ROUND, "applied": ["a", "a"]}}
BROKEN = [
    (also({**DELIVERED, "id": "x"}), "parcels not ended once: s-1"),
    (replace(HONEST, rounds={"van-1": {**ROUND, "drops": ["s-1"]}}), "parcels left on van-1"),
    (replace(HONEST, views={**HONEST.views, "failed": Counter({("v", "s"): 1})}), "the views and the log differ"),
    (also({**CLOSED, "id": "x"}), f"exceptions not closed once: {MISSED}"),
    (replace(HONEST, exceptions={}), "exceptions on the log and in KV differ"),
    (replace(HONEST, exceptions=OPEN), "an exception is open in KV"),
    (also(event("x", "start", incident=MISSED, step="assess")), f"steps not completed once: {MISSED}:assess"),
    (also({**HOLDING, "id": "x"}), "a hold was repeated"),
    (replace(HONEST, rounds=TWICE), "a change was applied twice to van-1"),
    (replace(HONEST, rounds={f"van-{n}": ROUND for n in (1, 2, 3)}), "a change is in more than two rounds"),
    (also({**TOLD, "id": "x"}), "a customer was told one thing under two keys"),
    (also({**TOLD, "text": TEXT + " (4711)"}), "told in two wordings"),
    (replace(HONEST, parked={MISSED: {}}), f"a message is left parked: {MISSED}"),
    (also(event("x", "dead_letter")), "1 dead letters that nobody parked"),
    (replace(HONEST, memories=()), f"delays not remembered once: c-1:{MISSED}"),
    (replace(HONEST, memories=(*HONEST.memories, ("m-2", *HONEST.memories[0][1:]))),
     f"delays not remembered once: c-1:{MISSED}"),
    (replace(HONEST, memories=(*HONEST.memories, ("m-2", "c-2", MISSED, "missed drop"))),
     f"delays not remembered once: c-2:{MISSED}"),
    (replace(HONEST, positions=GAP), "the reports of van-1 go back"),
    (replace(REPLACED, positions=GAP), "the reports of van-1 go back"),
    (replace(HONEST, positions=(report(0.0, 9.0), report(0.36, 1.0))), "the reports of van-1 go back"),
    (also(event("x", "bill", bill={"total": 1})), "2 bills"),
    (replace(HONEST, results={}), "no saved check of the bill"),
    (also({**OVER, "id": "x"}), "2 outcomes of the bill, 1 due"),
    (replace(HONEST, decisions={}), "0 decisions stored, 1 due"),
    (replace(HONEST, decisions={}), "decided [], a person said ['approved']"),
    (replace(HONEST, decisions={BILL: {"answer": "approved", "by": "nobody"}}),
     "decided by ['nobody', 'person'], person due"),
    (turned(), "['paid'] came of what a person said: ['approved']"),
    (turned("disputed", HELD, "disputed", 0), "0 held back, [1935] due"),
    (replace(HONEST, forks=("bill-d1",)), "1 forks left"),
    (without(PLANNED), f"replan of {MISSED} ended with neither a plan nor a replay on the log"),
    (instead(HOLDING, {**HOLDING, "incident": "another"}), f"replan of {MISSED} ended with neither a plan nor a replay on the log"),
    (instead(STEP, STARTED_AGAIN, STEP_AGAIN), f"replan of {MISSED} ended with neither a plan nor a replay on the log"),
    (without(SHOWN), f"asked about {BILL} without a fork on the log"),
    (instead(CLOSED, DISPATCH_AGAIN, {**CLOSED, **AGAIN}), f"{MISSED} closed by a process that never resumed it"),
    (asked_again(RESUMED_DAY, 11.9), f"replan of {MISSED} was asked for again although the journal had it"),
    (asked_again(RESUMED_DAY, 11.9, "01MA"), f"replan of {MISSED} was asked for again although the journal had it"),
    (asked_again(also(RETRIED), 11.9), f"replan of {MISSED} was asked for again although the journal had it"),
    (also(LATER_UP, NOTIFY_LATE), f"start notify of {MISSED} by a process that came when that was over"),
    (also(LATER_UP, {**TOLD, **LATE, "id": TOLD["id"]}), f"told notify of {MISSED} by a process that came when that was over"),
    (instead(CHECKED, LATER_UP, ASKED_LATE, {**CHECKED, "at": 5.3}),
     f"asked invoice-check of {BILL} by a process that came when that was over"),
    (sooner(CLOSED, STEP_NOTIFY), f"{MISSED}: closed before step notify"),
    (sooner(TOLD, STEP), f"{MISSED}: told notify before start notify"),
    (sooner(START_NOTIFY, STEP), f"{MISSED}: start notify before step replan"),
    (sooner(STEP, PLANNED), f"{MISSED}: step replan before checkpoint replan"),
    (instead(STEP_NOTIFY, STEP_NOTIFY, TOLD_TOO), f"{MISSED}: step notify before told notify"),
    (sooner(OPENED, PROBLEM), f"{MISSED}: exception before failed"),
    (sooner(OVER, ASKED), f"{BILL}: disputed before asked invoice-check"),
    (sooner(CLOSED_BILL, CHECKED), f"{BILL}: closed before step invoice-check"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "sentence"), BROKEN)
def test_what_is_broken_is_named_without_another_day(found: Day, sentence: str) -> None:
    assert sentence in violations(found, expected=None)


EMPTIED = {"stops", "decisions", "positions", "memories"}
OTHER = [
    (replace(HONEST, positions=GAP), "another day: gaps ['van-1'] instead of []"),
    (instead(TOLD, {**TOLD, "text": "Hello."}), "on the log too: told "),
    (instead(TOLD, {**TOLD, "text": "Hello."}), "not on the log: told "),
    (turned("disputed", HELD, "disputed", 0), "another day: results [['day-bill:check', {'by': 'person', 'hold': 0"),
    (replace(HONEST, results={**HONEST.results, f"{MISSED}:plan": {"do": "again"}}), "another day: results"),
    (replace(HONEST, exceptions={**HONEST.exceptions, MISSED: {"kind": "closure", "state": "closed"}}),
     "another day: exceptions [['day-1', {'kind': 'closure'"),
    (replace(HONEST, faults={"sms": {"down": True}}), "another day: faults [['sms', {'down': True}]] instead of []"),
    (replace(HONEST, cursors={"roster": {"driving": []}}), "another day: roster [{'driving': []}]"),
    (replace(HONEST, rounds={"van-1": {**ROUND, "handed": ["s-1"]}}), "another day: rounds"),
    *((replace(HONEST, **{what: type(getattr(HONEST, what))()}), f"another day: {what} [] instead of")
      for what in sorted(EMPTIED)),
    *((without(one), f"not on the log: {one['kind']} ")
      for one in (OPENED, STEP, TOLD, CLOSED, DELIVERED, SHOWN, ASKED, OVER)),
    (without(DELIVERED, OVER), " and 1 more"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "part"), OTHER)
def test_what_is_otherwise_than_on_an_undisturbed_day_is_named(found: Day, part: str) -> None:
    assert any(part in said for said in violations(found))


def test_every_sentence_of_the_judge_was_heard() -> None:
    heard = {said for found, _ in (*BROKEN, *OTHER) for said in violations(found)}
    assert unheard(day_invariants.__file__, heard) == []
