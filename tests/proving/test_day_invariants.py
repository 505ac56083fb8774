"""The judge of delivery days: an honest day's records pass, each doctored one is named."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from desk.proving.day_invariants import Day, verdict

RUN = {"stream": "fleet-d1", "disputes": 1, "answer": "approved", "expected": None}
BILL = "d1-bill"
HELD, PAID = "$19.35 held back, as decided", "paid as billed, as decided"
TEXT = "Hello Ada, thank you for your order. Expect your parcel 10:00 to 11:00."
LATER = " Sorry, this is the third time we've been late to you, and we've flagged it."


def event(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "agent": "agent", "van": None, "stop": None, **fields}


DELIVERED = event("e-6", "delivered", van="van-1", stop="s-1", minute=90.0)
TOLD = event("e-4", "told", incident="d1-s-1", stop="s-1", text=TEXT)
OVER = event("e-8", "disputed", incident=BILL, by="person", text=HELD)
HONEST = Day(
    everything=(
        event("e-1", "exception", incident="d1-s-1"),
        event("e-2", "start", incident="d1-s-1", step="notify"),
        event("e-3", "holding", incident="d1-s-1"),
        TOLD,
        event("e-5", "step", incident="d1-s-1", step="notify"),
        event("e-9", "closed", incident="d1-s-1"),
        DELIVERED,
        event("e-7", "bill", bill={"total": 12345}),
        event("e-a", "asked", incident=BILL),
        OVER,
    ),
    dead=0,
    rounds={"van-1": {"applied": ["d1-s-1"], "drops": [], "retry": [], "back": []}},
    exceptions={"d1-s-1": {"state": "closed"}},
    stops={"s-1": {}},
    parked={},
    results={f"{BILL}:check": {"outcome": "disputed", "by": "person", "hold": 1935}},
    decisions={BILL: {"answer": "approved", "by": "person"}},
    forks=(),
    views={
        "delivered": Counter({("van-1", "s-1"): 1}),
        "failed": Counter(),
        "returned": Counter(),
    },
)
EXPECTED = verdict(RUN, HONEST)["outcome"]


def violations(found: Day, **run: Any) -> list[str]:
    return verdict({**RUN, "expected": EXPECTED, **run}, found)["violations"]


def also(*events: dict[str, Any]) -> Day:
    return replace(HONEST, everything=(*HONEST.everything, *events))


def instead(old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple(new if e is old else e for e in HONEST.everything)


def turned(kind: str = "paid", text: str = PAID, outcome: str = "paid", hold: int = 0) -> Day:
    """A day whose bill ended otherwise than a person said."""
    check = {"outcome": outcome, "by": "person", "hold": hold}
    other = {**OVER, "kind": kind, "text": text}
    return replace(HONEST, everything=instead(OVER, other), results={f"{BILL}:check": check})


def test_an_honest_day_passes_with_its_repeats_counted() -> None:
    assert violations(HONEST) == [] == violations(also(TOLD))
    assert verdict(RUN, also(TOLD))["raw"]["told"] == 2
    assert EXPECTED["told"] == [["-s-1", "s-1", TEXT]]
    assert EXPECTED["dispute"] == [["disputed", "person", 1935], ["disputed", "person", HELD]]


def test_how_late_a_customer_was_served_on_other_days_of_the_stack_is_not_this_days_outcome() -> None:
    assert violations(replace(HONEST, everything=instead(TOLD, {**TOLD, "text": TEXT + LATER}))) == []


def test_a_text_in_other_words_under_the_same_id_is_seen() -> None:
    assert "told in two wordings" in violations(also({**TOLD, "text": TEXT + " (4711)"}))


def test_another_text_than_undisturbed_is_seen() -> None:
    [said] = violations(replace(HONEST, everything=instead(TOLD, {**TOLD, "text": "Hello."})))
    assert said.startswith("another day: told")


@pytest.mark.parametrize("found", [turned(), turned("disputed", HELD), turned(outcome="disputed", hold=1935)])
def test_an_answer_turned_round_is_seen(found: Day) -> None:
    assert any(
        v.endswith("came of what a person said: ['approved']") for v in violations(found, expected=None)
    )
    assert any(v.startswith("another day: dispute") for v in violations(found))


def test_another_sum_held_back_is_seen() -> None:
    [said] = violations(turned("disputed", HELD, "disputed", 0))
    assert said.startswith("another day: dispute")


@pytest.mark.parametrize("answer", ["declined", "undecided"])
def test_an_answer_nobody_gave_is_seen(answer: str) -> None:
    found = replace(HONEST, decisions={BILL: {"answer": answer, "by": "person"}})
    assert violations(found) == [f"decided ['{answer}'], a person said ['approved']"]


def test_a_day_without_a_dispute_needs_no_person() -> None:
    agrees = {f"{BILL}:check": {"outcome": "agrees", "hold": 0}}
    events = tuple(e for e in HONEST.everything if e["kind"] not in ("asked", "disputed"))
    quiet = replace(HONEST, everything=events, decisions={}, results=agrees)
    assert violations(quiet, disputes=0, expected=None) == []


ROUND = HONEST.rounds["van-1"]


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (also({**DELIVERED, "id": "x"}), "parcels not ended once: s-1"),
        (also(event("x", "closed", incident="d1-s-1")), "exceptions not closed once: d1-s-1"),
        (replace(HONEST, exceptions={}), "exceptions on the log and in KV differ"),
        (replace(HONEST, exceptions={"d1-s-1": {"state": "open"}}), "an exception is open in KV"),
        (also(event("x", "start", incident="d1-s-1", step="replan")), "steps not completed once: d1-s-1:replan"),
        (also({**TOLD, "id": "x"}), "a customer was told one thing under two keys"),
        (replace(HONEST, rounds={"van-1": {**ROUND, "applied": ["a", "a"]}}), "a change was applied twice to van-1"),
        (
            replace(HONEST, rounds={van: ROUND for van in ("van-1", "van-2", "van-3")}),
            "a change is in more than two rounds",
        ),
        (replace(HONEST, rounds={"van-1": {**ROUND, "drops": ["s-1"]}}), "parcels left on van-1"),
        (replace(HONEST, parked={"d1-s-1": {}}), "a message is left parked: d1-s-1"),
        (also(event("x", "holding", incident="d1-s-1")), "a hold was repeated"),
        (also(event("x", "bill", bill={"total": 1})), "2 bills"),
        (also({**OVER, "id": "x"}), "2 outcomes of the bill, 1 due"),
        (replace(HONEST, decisions={}), "0 decisions stored, 1 due"),
        (replace(HONEST, results={}), "no saved check of the bill"),
        (replace(HONEST, forks=("bill-d1",)), "1 forks left"),
        (replace(HONEST, views={**HONEST.views, "failed": Counter({("v", "s"): 1})}), "the views and the log differ"),
        (also(event("x", "dead_letter")), "1 dead letters that nobody parked"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named(found: Day, sentence: str) -> None:
    assert sentence in violations(found)
