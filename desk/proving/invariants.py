"""Judge a support desk's runs by what is durable: the log, key-value state and the bank's file.

A script that imports nothing of the desk, so that it cannot share the desk's mistakes:
`python invariants.py CONNECTION < runs > verdicts`, JSON lines both ways. A run is {"stream", "bank", "tickets",
"issues", "refunds", "declined", "ledger", "expected"}: its stream, the bank's file, how many tickets it has, how many
issues and how many approved and declined refunds they should have, whether billing keeps a ledger, and the outcome of
the same run without a kill, or null. Its verdict is {"stream", "violations": [sentences], "raw": {what: how often,
repeats counted}, "outcome"}.
"""

import asyncio
import json
import sqlite3
import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cbor2
import laser_sdk as ls

_SAME_MOMENT = 0.002  # seconds: a record's id knows its time to a millisecond


@dataclass(frozen=True)
class Found:
    """What is durable of a run: events and the lane's envelopes in log order, how many dead letters, key-value state
    by namespace; the bank's requests (key, cents, customer, at) and payments (key, cents, customer).
    """

    events: Sequence[Mapping[str, Any]]
    lane: Sequence[Mapping[str, Any]]
    dead: int
    ledger: Mapping[str, Any]
    decisions: Mapping[str, Any]
    cases: Mapping[str, Any]
    claims: Mapping[str, Any]
    checkpoints: Mapping[str, Any]
    asked: Sequence[tuple[str, int, str, float]]
    paid: Sequence[tuple[str, int, str]]

    def of(self, kind: str, *states: str) -> list[Mapping[str, Any]]:
        """The events of a kind, repeats included."""
        return [e for e in self.events if e["kind"] == kind and (not states or e.get("state") in states)]

    def sent(self, kind: str, operation: str) -> list[Mapping[str, Any]]:
        """The envelopes of a kind with an operation, repeats included."""
        return [e for e in self.lane if e["kind"] == kind and e.get("operation") == operation]


def told(record: bytes) -> float:
    """When a record was made, in epoch seconds: the first 48 bits of its id (a ULID) are milliseconds."""
    return int.from_bytes(record[:6], "big") / 1000


async def read(laser: ls.Laser, topic: str) -> list[Any]:
    """Every message of a topic."""
    return list(await laser.topic(topic).replay().poll())


async def kept(laser: ls.Laser, namespace: str) -> dict[str, Any]:
    """Everything in a key-value namespace."""
    entries = await laser.kv(namespace).scan().entries()
    return {bytes(entry.key).decode(): json.loads(bytes(entry.value)) for entry in entries}


async def judge(connection: str, run: dict[str, Any]) -> dict[str, Any]:
    """One run's verdict."""
    laser = await ls.Laser.connect(connection, stream=run["stream"], connect_timeout_ms=10_000)
    with sqlite3.connect(f"file:{run['bank']}?mode=ro", uri=True) as bank:
        asked = bank.execute("select key, cents, customer, at from asked").fetchall()
        paid = bank.execute("select key, cents, customer from paid").fetchall()
    found = Found(
        events=[message.json() for message in await read(laser, "desk.events")],
        lane=[cbor2.loads(bytes(message.payload)) for message in await read(laser, "agent.sessions")],
        dead=len(await read(laser, "agent.dlq")),
        ledger=await kept(laser, "ledger"),
        decisions=await kept(laser, "decisions"),
        cases=await kept(laser, "cases"),
        claims=await kept(laser, "claims"),
        checkpoints=await kept(laser, "checkpoints"),
        asked=asked,
        paid=paid,
    )
    await laser.close()
    return verdict(run, found)


def verdict(run: Mapping[str, Any], found: Found) -> dict[str, Any]:
    """What is to be said of a run's records. Pure."""
    events, lane, ledger, sent = found.events, found.lane, found.ledger, found.sent

    def keys(records: Sequence[Mapping[str, Any]]) -> list[str]:
        return [record["idempotency_key"] for record in records]

    replies, prompts = sent("response", "reply"), sent("command", "approve")
    refunds, answers = sent("command", "refund"), sent("command", "decide")
    closed = [event["id"] for event in events if event["kind"] == "closed"]
    lookups = [event for event in events if event["kind"] == "looking_up"]
    held = Counter(event["step"] for event in events if event["kind"] == "holding")
    asked_for = run["refunds"] + run["declined"]
    paid = [key for key, _, _ in found.paid]
    handed = {refund(record) for record in refunds}
    requested = {(key, cents, customer) for key, cents, customer, _ in found.asked}
    entered = {(key, entry["cents"]) for key, entry in ledger.items()}
    outcome = outcome_of(found)
    expected = run["expected"] or outcome

    violations = [
        sentence
        for holds, sentence in [
            (len(set(closed)) == run["tickets"], f"closed {len(set(closed))} times, {run['tickets']} due"),
            (len(set(keys(replies))) == run["issues"], f"{len(set(keys(replies)))} replies for {run['issues']} issues"),
            (len({bytes(r["body"]) for r in replies}) <= len(set(keys(replies))), "one reply in two wordings"),
            (len(set(keys(prompts))) == asked_for, f"{len(set(keys(prompts)))} questions, {asked_for} due"),
            (len(set(keys(refunds))) == run["refunds"], f"{len(set(keys(refunds)))} refunds, {run['refunds']} due"),
            (len(paid) == run["refunds"], f"paid {len(paid)} times, {run['refunds']} due"),
            (not run["ledger"] or set(paid) == set(ledger), f"paid {sorted(set(paid))}, in the ledger {sorted(ledger)}"),
            (set(found.paid) == requested == handed,
             f"paid {sorted(set(found.paid))}, asked {sorted(requested)}, handed over {sorted(handed)}"),
            (not run["ledger"] or {(key, cents) for key, cents, _ in found.paid} == entered,
             f"amounts in the ledger: {sorted(entered)}"),
            (not asked_again(found), "the bank was asked after the ledger was done"),
            (all(e["state"] == "done" for e in ledger.values()), "a refund that is not done in the ledger"),
            (not found.dead and not any(e["kind"] == "dead_letter" for e in events), f"{found.dead} dead letters"),
            (max(held.values(), default=0) <= 1, f"held {max(held.values(), default=0)} times"),
            (not late(lookups, lane), "a lookup after a recorded result"),
            *((False, sentence) for sentence in [*misdecided(found), *misclosed(found)]),
            *((outcome[what] == expected[what], f"otherwise: {what} {difference(outcome[what], expected[what])}")
              for what in outcome if what != "events"),
            *((False, f"not on the log: {place}") for place in missing(found, expected["events"])),
            *((False, f"on the log too: {place}") for place in outcome["events"] if place not in expected["events"]),
        ]
        if not holds
    ]  # fmt: skip
    raw = {
        "lookups": len(lookups),
        "holds": sum(held.values()),
        "questions": len(prompts),
        "answers": len(answers),
        "refunds": len(refunds),
        "replies": len(replies),
        "closed": len(closed),
        "bank asked": len(found.asked),
        "paid": len(paid),
    }
    return {"stream": run["stream"], "violations": violations, "raw": raw, "outcome": outcome}


def refund(record: Mapping[str, Any]) -> tuple[str, int, str]:
    """What a command to refund says is to be paid: key, cents, customer."""
    body = json.loads(record["body"])
    return record["idempotency_key"], body["cents"], body["customer"]


def outcome_of(found: Found) -> dict[str, list[Any]]:
    """What must come of a run wherever it is killed. Which issue is the last of a ticket, and closes it, is timing."""
    outcome = {
        "paid": sorted(set(found.paid)),
        "replies": sorted(
            {(r["idempotency_key"], bytes(r["body"]).decode()) for r in found.sent("response", "reply")}
        ),
        "refunds": sorted({(r["idempotency_key"], _text(r)) for r in found.sent("command", "refund")}),
        "questions": sorted({(r["idempotency_key"], _text(r)) for r in found.sent("command", "approve")}),
        "issues": sorted(
            (t, i, outcome) for t, case in found.cases.items() for i, outcome in case["issues"].items()
        ),
        "decisions": sorted((step, d["ok"], d["by"], d["answer"]) for step, d in found.decisions.items()),
        "claims": sorted(found.claims.items()),
        "checkpoints": sorted(found.checkpoints),
        "events": sorted({place(e) for e in found.events if is_keyed(e) and e["kind"] != "closed"}),
    }
    return json.loads(json.dumps(outcome))


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(json.loads(record["body"]), sort_keys=True)


def place(event: Mapping[str, Any]) -> str:
    """What an event is about: "t-1:resolve-1:ledger:done"."""
    return ":".join(filter(None, (event.get("step"), event["kind"], event.get("state"))))


def is_keyed(event: Mapping[str, Any]) -> bool:
    """Whether a repeat of it would have the same id."""
    return event["id"] == uuid.uuid5(uuid.NAMESPACE_OID, place(event)).hex


def missing(found: Found, expected: Sequence[str]) -> list[str]:
    """Keyed events that should be on the log and are not.

    Killed between a record and its event, an agent goes on from the record, and says so by another event: what a
    `replay` goes on from may lack its `checkpoint` and `lookup`, what found the ledger `started` or `done` may lack
    `started` or both.
    """
    there = {place(event) for event in found.events if is_keyed(event)}
    instead = {f"{e['step']}:{kind}" for e in found.of("replay") for kind in ("checkpoint", "lookup")}
    for event in found.of("ledger", "found started", "found done"):
        instead.add(f"{event['step']}:ledger:started")
        if event["state"] == "found done":
            instead.add(f"{event['step']}:ledger:done")
    return [event for event in expected if event not in there | instead]


def asked_again(found: Found) -> bool:
    """Whether the bank was asked although the log had it that the ledger was done."""
    known = [(f"{e['step']}:refund", e["at"]) for e in found.of("ledger", "done", "found done")]
    return any(key == done and at > since for key, _, _, at in found.asked for done, since in known)


def misdecided(found: Found) -> list[str]:
    """Where something else was done than the answer that came first says."""
    answers: dict[str, tuple[bool, str, str]] = {}
    for record in found.sent("command", "decide"):
        body = json.loads(record["body"])
        answers.setdefault(body["handoff"], (body["ok"], body["by"], record["idempotency_key"]))
    stored = {step: (d["ok"], d["by"], d["answer"]) for step, d in found.decisions.items()}
    wrong = (
        [] if stored == answers else [f"stored {sorted(stored.items())}, answered {sorted(answers.items())}"]
    )
    acted: dict[str, set[tuple[bool, str]]] = {step: set() for step in answers}
    for event in [*found.of("approved"), *found.of("declined")]:
        acted.setdefault(event["step"], set()).add((event["kind"] == "approved", event["by"]))
    handed = {json.loads(r["body"])["handoff"] for r in found.sent("command", "refund")}
    ends = {issue: end for case in found.cases.values() for issue, end in case["issues"].items()}
    for step, (ok, by, _) in answers.items():
        done = (acted[step], step in handed, ends.get(step))
        if done != ({(ok, by)}, ok, "refunded" if ok else "declined"):
            wrong.append(f"the first answer to {step} was {'yes' if ok else 'no'} by {by}, done was {done}")
    return wrong


def misclosed(found: Found) -> list[str]:
    """Where a ticket was closed by another issue, or as something else, than its case has."""
    closed = {(e["ticket"], e["step"], e.get("state")) for e in found.of("closed")}
    due = {(t, c["closed_by"], c["issues"].get(c["closed_by"])) for t, c in found.cases.items()}
    return [] if closed == due else [f"closed {sorted(closed)}, in the cases {sorted(due, key=str)}"]


def difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """What is there and should not be, and the other way round; the first of each."""
    more = [item for item in found if item not in expected][:1]
    less = [item for item in expected if item not in found][:1]
    return f"{more} instead of {less}"


def late(lookups: Sequence[Mapping[str, Any]], lane: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an order was looked up again although the ticket's session held its record."""
    tickets = {
        r["conversation"]: json.loads(r["body"])["ticket"] for r in lane if r.get("operation") == "triage"
    }
    calls = [record for record in lane if record.get("tool") == "order_lookup"]
    orders = {c["correlation"]: json.loads(c["body"])["order"] for c in calls if c["kind"] == "command"}
    known = [
        (tickets[c["conversation"]], f"order {orders[c['correlation']]}", told(c["record"]))
        for c in calls
        if c["kind"] == "response"
    ]
    return any(
        e["ticket"] == ticket and e["text"] == order and e["at"] > at + _SAME_MOMENT
        for e in lookups
        for ticket, order, at in known
    )


async def main(connection: str) -> None:
    for line in sys.stdin:
        print(json.dumps(await judge(connection, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
