"""The judge of tickets: an honest run's records pass, each doctored one is named."""

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from desk.proving import invariants
from desk.proving.invariants import Found, verdict
from tests.proving.sentences import unheard

RUN = {
    "stream": "run-1",
    "tickets": 1,
    "issues": 1,
    "refunds": 1,
    "declined": 0,
    "ledger": True,
    "expected": None,
}
STEP = "t-1:resolve-1"
REFUND, APPROVE, REPLY = f"{STEP}:refund", f"{STEP}:approve", f"{STEP}:reply"
YES, NO = f"{STEP}:decide:person:yes", f"{STEP}:decide:person:no"
TEXT = "Dear customer, $49.00 for order 1042 (duplicate charge) is on its way to your bank."
DUE = {"handoff": STEP, "order": "1042", "customer": "c-17", "cents": 4900, "what": "duplicate charge"}


def event(at: float, place: str, step: str = STEP, key: bool = True, **fields: Any) -> dict[str, Any]:
    """What an agent writes. place: kind, or kind:state; a keyed one's id is derived from it."""
    kind, _, state = place.partition(":")
    name = uuid.uuid5(uuid.NAMESPACE_OID, f"{step}:{place}") if key else uuid.uuid4()
    stated = {"state": state} if state else {}
    return {"id": name.hex, "at": at, "kind": kind, "ticket": "t-1", "step": step, **stated, **fields}


def envelope(kind: str, operation: str, key: str, body: Any) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps({"ticket": "t-1", **body})
    return {
        "kind": kind,
        "operation": operation,
        "idempotency_key": key,
        "conversation": b"c",
        "body": text.encode(),
        **sent_at(7.9),
    }


def sent_at(at: float) -> dict[str, Any]:
    """When an envelope was made, and came to the log."""
    record = int(at * 1000).to_bytes(6, "big") + bytes(10)
    return {"record": record, "arrived": at + 0.0005, "source": "resolver"}


def life(kind: str, at: float, pid: int, agent: str = "resolver") -> dict[str, Any]:
    return {"id": f"{kind}-{at}", "kind": kind, "at": at, "pid": pid, "agent": agent}


def answer(ok: bool) -> dict[str, Any]:
    return envelope("command", "decide", YES if ok else NO, {**DUE, "ok": ok, "by": "person"})


def tool(kind: str, at: float, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "tool": "order_lookup", "conversation": b"c", "correlation": b"1", "arrived": at,
            "body": b'{"order": "1042"}', **fields}  # fmt: skip


END = {"kind": "status", "operation": "session", "conversation": b"c", "last": True, "task_state": 4}
HONEST = Found(
    events=(
        event(1, "triage", "t-1"),
        event(2, f"handoff:{STEP}", "t-1"),
        event(3, "looking_up", key=False, text="order 1042"),
        event(4, "checkpoint"),
        event(5, "lookup"),
        event(6, "holding", key=False),
        event(7, "policy:due", pid=1),
        event(8, "asked"),
        event(9, "approved", by="person"),
        event(10, "handoff:refund"),
        event(11, "ledger:started"),
        event(13, "paid", cents=4900),
        event(14, "ledger:done"),
        event(15, "reply", text=TEXT),
        event(16, "closed:refunded"),
    ),
    lane=(
        envelope("command", "triage", "t-1", {"text": "I was charged twice."}),
        envelope("command", "resolve", STEP, {"handoff": STEP}),
        tool("command", 4.5),
        tool("response", 4.6),
        envelope("command", "approve", APPROVE, DUE),
        answer(True),
        envelope("command", "refund", REFUND, DUE),
        envelope("response", "reply", REPLY, TEXT),
        END,
    ),
    dead=0,
    ledger={REFUND: {"ticket": "t-1", "cents": 4900, "state": "done"}},
    decisions={STEP: {"ok": True, "by": "person", "answer": YES}},
    cases={"t-1": {"issues": {STEP: "refunded"}, "closed_by": STEP}},
    claims={"1042:duplicate": STEP},
    checkpoints={STEP: {"cp": "…"}},
    texts={REPLY: {"text": TEXT, "by": "mock"}},
    asked=((REFUND, 4900, "c-17", 12.0),),
    paid=((REFUND, 4900, "c-17"),),
)
EXPECTED = verdict(RUN, HONEST)["outcome"]


def violations(found: Found, expected: Any = EXPECTED, **run: Any) -> list[str]:
    return verdict({**RUN, "expected": expected, **run}, found)["violations"]


def also(*events: dict[str, Any]) -> Found:
    return replace(HONEST, events=(*HONEST.events, *events))


def without(*kinds: str) -> Found:
    """The run without these events: a kind, or kind:state."""
    names = [event(0, kind)["id"] for kind in kinds]
    return replace(HONEST, events=tuple(e for e in HONEST.events if e["id"] not in names))


def also_sent(*envelopes: dict[str, Any]) -> Found:
    return replace(HONEST, lane=(*HONEST.lane, *envelopes))


def replied(text: str) -> Found:
    """The run with another reply, which is saved and sent."""
    lane = tuple(envelope("response", "reply", REPLY, text) if e == SENT else e for e in HONEST.lane)
    return replace(HONEST, lane=lane, texts={REPLY: {"text": text, "by": "mock"}})


def moved(place: str, before: str) -> Found:
    """The run with an event (a kind, or kind:state) where it must not yet be."""
    [event_there] = [e for e in HONEST.events if e["id"] == event(0, place)["id"]]
    rest = without(place).events
    to = [e["id"] for e in rest].index(event(0, before)["id"])
    return replace(HONEST, events=(*rest[:to], event_there, *rest[to:]))


def instead(place: str, other: dict[str, Any]) -> Found:
    """The run with another event in the place of one: a kind, or kind:state."""
    gone = event(0, place)["id"]
    return replace(HONEST, events=tuple(other if e["id"] == gone else e for e in HONEST.events))


def unsent(*envelopes: dict[str, Any]) -> Found:
    return replace(HONEST, lane=tuple(e for e in HONEST.lane if e not in envelopes))


def asked_anew(*events: dict[str, Any]) -> Found:
    """The run with its question put again."""
    return replace(also(*events), lane=(*HONEST.lane, QUESTION_AGAIN))


SENT = envelope("response", "reply", REPLY, TEXT)
AGAIN = (REFUND, 4900, "c-17", 13.5)
REPLAY = event(20, "replay", key=False)
QUESTION = envelope("command", "approve", APPROVE, DUE)
QUESTION_AGAIN = {**QUESTION, **sent_at(8.5)}
POLICY_AGAIN = event(7.95, "policy:due", pid=2)
UP, DIED, UP_AGAIN = life("agent_up", 1, 1), life("died", 8.1, 1), life("agent_up", 8.2, 2)
REPLIED_LATE = event(16.5, "reply", text=TEXT, pid=3)
STARTED, DONE = (event(20, f"ledger:found {state}", key=False) for state in ("started", "done"))


def test_an_honest_run_passes() -> None:
    assert violations(HONEST) == [] == violations(HONEST, None)
    assert EXPECTED["paid"] == [[REFUND, 4900, "c-17"]] and EXPECTED["replies"] == [[REPLY, TEXT]]


@pytest.mark.parametrize(
    "found",
    [
        replace(also(STARTED), asked=(*HONEST.asked, AGAIN)),  # killed after the bank had paid
        also(event(4.59, "looking_up", key=False, text="order 1042")),  # before the log had the record
        replace(without("checkpoint", "lookup"), events=(*without("checkpoint", "lookup").events, REPLAY)),
        instead("ledger:started", STARTED),
        instead("ledger:done", DONE),
        also_sent(SENT, END, answer(True), answer(False)),  # a late answer changes nothing
        asked_anew(UP, life("agent_up", 8.2, 2)),  # the first was stopped before it asked, and continued
        asked_anew(UP, DIED, life("agent_up", 8.6, 2)),  # by whom, before the next came?
        asked_anew(UP, DIED, life("agent_up", 7.9, 2), POLICY_AGAIN),  # two were there
        replace(
            also(UP, DIED, UP_AGAIN), lane=(*HONEST.lane, {**QUESTION, "arrived": 8.5})
        ),  # a frame held back
        also(life("agent_up", 15.9, 3, "billing"), REPLIED_LATE),  # stopped before it replied, and continued
    ],
)
def test_what_a_kill_may_repeat_or_leave_out_is_no_violation(found: Found) -> None:
    assert violations(found) == []


def test_what_is_done_twice_is_told_where_nobody_died() -> None:
    looked_up = event(3.1, "looking_up", key=False, text="order 1042")
    assert verdict(RUN, HONEST)["repeated"] == []
    assert verdict(RUN, also(looked_up))["repeated"] == ["lookups 2 times for 1"]
    assert verdict(RUN, also_sent(SENT))["repeated"] == ["replies 2 times for 1"]
    died = event(3.05, "died", key=False, agent="resolver", pid=1)
    assert verdict(RUN, also(died, looked_up))["repeated"] == []


def test_the_bank_asked_after_the_ledger_was_done_is_seen() -> None:
    known = "the bank was asked after the ledger was done"
    late = replace(HONEST, asked=(*HONEST.asked, (REFUND, 4900, "c-17", 14.5)))
    assert violations(late) == [known] == violations(late, None)
    # killed between the entry and its event: the next one found it done, and asked
    found = replace(instead("ledger:done", DONE), asked=(*HONEST.asked, (REFUND, 4900, "c-17", 20.5)))
    assert violations(found) == [known] == violations(found, None)


@pytest.mark.parametrize("paid", [(REFUND, 1, "c-17"), (REFUND, 4900, "c-18")])
def test_another_amount_or_payee_is_seen(paid: tuple[str, int, str]) -> None:
    found = replace(HONEST, paid=(paid,), asked=((*paid, 12.0),))
    assert any(v.startswith("paid [") and "handed over" in v for v in violations(found, None))
    assert any(v.startswith("otherwise: paid") for v in violations(found))


def test_another_amount_in_the_ledger_is_seen() -> None:
    found = replace(HONEST, ledger={REFUND: {"cents": 1, "state": "done"}})
    assert violations(found) == [f"amounts in the ledger: [('{REFUND}', 1)]"] == violations(found, None)


def test_a_reply_of_another_content_is_seen() -> None:
    [said] = violations(replied(TEXT.replace("$49.00", "$0.01").replace("1042", "9")))
    assert said.startswith(f"otherwise: replies [['{REPLY}', 'Dear customer, $0.01 for order 9")


def test_another_outcome_is_seen() -> None:
    found = replace(
        without("closed:refunded"),
        events=(*without("closed:refunded").events, event(16, "closed:paid_back")),
        cases={"t-1": {"issues": {STEP: "paid_back"}, "closed_by": STEP}},
    )
    said = violations(found)
    assert any(v.startswith("otherwise: issues") for v in said)
    assert any(v.startswith(f"the first answer to {STEP} was yes") for v in violations(found, None))


@pytest.mark.parametrize(
    "kind",
    ["checkpoint", "lookup", "policy:due", "asked", "approved", "handoff:refund", "ledger:started", "paid",
     "ledger:done", "reply"],
)  # fmt: skip
def test_a_lost_event_is_seen(kind: str) -> None:
    assert f"not on the log: {STEP}:{kind}" in violations(without(kind))


@pytest.mark.parametrize(
    ("kind", "event_there"),
    [("paid", STARTED), ("ledger:done", STARTED), ("paid", DONE), ("reply", DONE), ("policy:due", REPLAY)],
)
def test_a_lost_event_is_seen_also_on_a_replay(kind: str, event_there: dict[str, Any]) -> None:
    found = without(kind)
    assert violations(replace(found, events=(*found.events, event_there))) == [
        f"not on the log: {STEP}:{kind}"
    ]


def test_an_approval_that_is_never_on_the_log_is_seen_without_another_run() -> None:
    assert len(violations(without("approved"), None)) == 1


def test_an_event_too_many_is_seen() -> None:
    assert violations(also(event(9, "policy:late"))) == [f"on the log too: {STEP}:policy:late"]


def test_acting_on_the_later_answer_is_seen() -> None:
    nothing_stored = replace(HONEST, decisions={})
    assert violations(nothing_stored, None)[0].startswith("stored [], answered")
    both = replace(also_sent(answer(False)), events=(*HONEST.events, event(17, "declined", by="person")))
    assert len(violations(both, None)) == 1
    assert violations(both, None)[0].startswith(f"the first answer to {STEP} was yes by person, done was")
    overwritten = replace(
        also_sent(answer(False)), decisions={STEP: {"ok": False, "by": "person", "answer": NO}}
    )
    assert violations(overwritten, None)[0].startswith(
        f"stored [('{STEP}', (False, 'person', '{NO}'))], answered"
    )


def test_a_decline_that_is_paid_is_seen() -> None:
    lane = tuple(answer(False) if e.get("operation") == "decide" else e for e in HONEST.lane)
    found = replace(HONEST, lane=lane, decisions={STEP: {"ok": False, "by": "person", "answer": NO}})
    assert any(v.startswith(f"the first answer to {STEP} was no") for v in violations(found, None))


def test_one_reply_in_two_wordings_is_seen_wherever_two_tickets_are_answered_alike() -> None:
    other = "t-2:resolve-1:reply"
    found = also_sent(
        envelope("response", "reply", other, TEXT), envelope("response", "reply", other, "Other words.")
    )
    assert "one reply in two wordings" in violations(found, None)
    assert "one reply in two wordings" not in violations(
        also_sent(envelope("response", "reply", other, TEXT)), None
    )


def test_a_ticket_closed_before_its_other_issue_is_answered_is_seen() -> None:
    other = "t-1:resolve-2"
    assert f"{other}: closed before replied" in violations(also(event(17, "reply", other)), None)


def test_what_is_replied_to_before_the_money_is_paid_is_seen_on_a_replay() -> None:
    """Killed after `started`, the next one told the customer first."""
    found = instead("ledger:started", STARTED)
    *before, paid, done, reply, closed = found.events
    said = violations(replace(found, events=(*before, reply, closed, paid, done)))
    assert said == [f"{STEP}: replied before done in the ledger"]


BROKEN = [
    (asked_anew(life("agent_up", 1, 9), UP, DIED, UP_AGAIN), f"{APPROVE} was put again although it was in the session"),
    (asked_anew(UP, life("killed", 8.1, 1), UP_AGAIN), f"{APPROVE} was put again although it was in the session"),
    (also(life("agent_up", 16.1, 3, "billing"), REPLIED_LATE),
     "a reply in t-1 by a process that came when that was closed"),
    (without("closed:refunded"), "closed 0 times, 1 due"),
    (unsent(SENT), "0 replies for 1 issues"),
    (also_sent(envelope("response", "reply", REPLY, "Other words.")), "one reply in two wordings"),
    (also_sent(envelope("command", "approve", "another", DUE)), "2 questions, 1 due"),
    (also_sent(envelope("command", "refund", "another", DUE)), "2 refunds, 1 due"),
    (replace(HONEST, paid=HONEST.paid * 2), "paid 2 times, 1 due"),
    (replace(HONEST, ledger={}), f"paid ['{REFUND}'], in the ledger []"),
    (replace(HONEST, ledger={REFUND: {"cents": 4900, "state": "started"}}),
     "a refund that is not done in the ledger"),
    (replace(HONEST, dead=1), "1 dead letters"),
    (also(event(6, "holding", key=False)), "held 2 times"),
    (also(event(7, "looking_up", key=False, text="order 1042")), "a lookup after a recorded result"),
    (replace(HONEST, claims={}), "otherwise: claims [] instead of [['1042:duplicate', 't-1:resolve-1']]"),
    (replace(HONEST, checkpoints={}), "otherwise: checkpoints [] instead of ['t-1:resolve-1']"),
    (replace(HONEST, cases={"t-1": {"issues": {STEP: "refunded"}, "closed_by": None}}),
     f"closed [('t-1', '{STEP}', 'refunded')], in the cases [('t-1', None, None)]"),
    (replace(HONEST, asked=(*HONEST.asked, (REFUND, 4900, "c-17", 14.5))),
     "the bank was asked after the ledger was done"),
    (replace(HONEST, paid=((REFUND, 1, "c-17"),)),
     f"paid [('{REFUND}', 1, 'c-17')], asked [('{REFUND}', 4900, 'c-17')], handed over [('{REFUND}', 4900, 'c-17')]"),
    (replace(HONEST, ledger={REFUND: {"cents": 1, "state": "done"}}), f"amounts in the ledger: [('{REFUND}', 1)]"),
    (replace(HONEST, decisions={}), f"stored [], answered [('{STEP}', (True, 'person', '{YES}'))]"),
    (without("approved"),
     f"the first answer to {STEP} was yes by person, done was (set(), True, 'refunded')"),
    (without("paid"), f"not on the log: {STEP}:paid"),
    (also(event(9, "policy:late")), f"on the log too: {STEP}:policy:late"),
    (unsent(END), "closed, and the session goes on: t-1"),
    (replace(unsent(END), lane=(*unsent(END).lane, {**END, "last": False, "task_state": 2})),
     "closed, and the session goes on: t-1"),
    (replace(HONEST, texts={}), f"sent [('{REPLY}', '{TEXT}')], saved []"),
    (replace(HONEST, texts={**HONEST.texts, "t-1:resolve-2:reply": {"text": "Never sent.", "by": "mock"}}),
     "sent [], saved [('t-1:resolve-2:reply', 'Never sent.')]"),
    (moved("ledger:started", "approved"), f"{STEP}: in the ledger before answered"),
    (moved("paid", "ledger:started"), f"{STEP}: paid before in the ledger"),
    (moved("ledger:done", "paid"), f"{STEP}: done in the ledger before paid"),
    (moved("reply", "ledger:done"), f"{STEP}: replied before done in the ledger"),
    (moved("closed:refunded", "reply"), f"{STEP}: closed before replied"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "sentence"), BROKEN)
def test_what_is_broken_is_named(found: Found, sentence: str) -> None:
    assert sentence in violations(found)


def test_every_sentence_of_the_judge_was_heard() -> None:
    heard = {said for found, _ in BROKEN for said in violations(found)}
    assert unheard(invariants.__file__, heard) == []
