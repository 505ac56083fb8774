"""Judge a support desk's runs by what is durable: the log, key-value state and the bank's file.

A script that imports nothing of the desk, so that it cannot share the desk's mistakes:
`python invariants.py CONNECTION < runs > verdicts`, JSON lines both ways. A run is {"stream", "bank", "tickets",
"issues", "refunds", "declined", "ledger", "expected"}: its stream, the bank's file, how many tickets it has, how many
issues and how many approved and declined refunds they should have, whether billing keeps a ledger, and the outcome of
the same run without a kill, or null. Its verdict is {"stream", "violations": [sentences], "raw": {what: how often,
repeats counted}, "repeated": [sentences], "outcome"}.
"""

import asyncio
import json
import sqlite3
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cbor2
import laser_sdk as ls

Outcome = Mapping[str, list[Any]]

_SAME_MOMENT = 0.002  # seconds: the log and an event have their times from two processes
_COMPLETED = 4  # the task state a session ends in
_ORDER = {
    "approved": "answered",
    "declined": "answered",
    "ledger started": "in the ledger",
    "ledger found started": "in the ledger",
    "paid": "paid",
    "ledger done": "done in the ledger",
    "ledger found done": "done in the ledger",
    "reply": "replied",
    "closed": "closed",
}
"""What the events of an issue say, in the order in which each is first said."""


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
    texts: Mapping[str, Any]
    asked: Sequence[tuple[str, int, str, float]]
    paid: Sequence[tuple[str, int, str]]

    def of(self, kind: str, *states: str) -> list[Mapping[str, Any]]:
        """The events of a kind, repeats included."""
        return [e for e in self.events if e["kind"] == kind and (not states or e.get("state") in states)]

    def sent(self, kind: str, operation: str) -> list[Mapping[str, Any]]:
        """The envelopes of a kind with an operation, repeats included."""
        return [e for e in self.lane if e["kind"] == kind and e.get("operation") == operation]


async def read(laser: ls.Laser, topic: str) -> list[Any]:
    """Every message of a topic."""
    rows, found = laser.topic(topic).replay(), []
    while messages := await rows.poll():
        found += messages
    return found


async def arrived(laser: ls.Laser, topic: str) -> list[dict[str, Any]]:
    """Every envelope of a topic, with `arrived`: when the log took it, in epoch seconds. That is later than its id
    says when its process was stopped while it sent it.
    """
    rows, found = laser.topic(topic).replay(), []
    while await rows.poll():
        pass
    for partition, head in enumerate(rows.offsets):
        reader = laser.topic(topic).consumer(
            "judge", partition=partition, polling="offset", offset=0, auto_commit="disabled", allow_replay=True
        )  # fmt: skip
        for _ in range(head):
            message = await reader.next()
            found.append({**cbor2.loads(bytes(message.payload)), "arrived": message.timestamp_micros / 1e6})
        await reader.shutdown()
    return sorted(found, key=lambda envelope: envelope["arrived"])


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
        lane=await arrived(laser, "agent.sessions"),
        dead=len(await read(laser, "agent.dlq")),
        ledger=await kept(laser, "ledger"),
        decisions=await kept(laser, "decisions"),
        cases=await kept(laser, "cases"),
        claims=await kept(laser, "claims"),
        checkpoints=await kept(laser, "checkpoints"),
        texts=await kept(laser, "texts"),
        asked=asked,
        paid=paid,
    )
    await laser.close()
    return verdict(run, found)


def verdict(run: Mapping[str, Any], found: Found) -> dict[str, Any]:
    """What is to be said of a run's records. Pure."""
    outcome = outcome_of(found)
    violations = [
        *numbers(run, found),
        *money(run, found),
        *repeated(found),
        *misdecided(found),
        *misclosed(found),
        *miswritten(found),
        *disordered(found),
        *redone(found),
        *otherwise(found, outcome, run["expected"] or outcome),
    ]
    things = counted(found)
    raw = {what: len(times) for what, times in things.items()}
    said = {"violations": violations, "raw": raw, "repeated": done_again(found, things)}
    return {"stream": run["stream"], **said, "outcome": outcome}


def counted(found: Found) -> dict[str, list[str]]:
    """Each thing that is counted raw: what it was about each time."""

    def keys(kind: str, operation: str) -> list[str]:
        return [record["idempotency_key"] for record in found.sent(kind, operation)]

    return {
        "lookups": [event["step"] for event in found.of("looking_up")],
        "holds": [event["step"] for event in found.of("holding")],
        "questions": keys("command", "approve"),
        "answers": keys("command", "decide"),
        "refunds": keys("command", "refund"),
        "replies": keys("response", "reply"),
        "closed": [event["ticket"] for event in found.of("closed")],
        "bank asked": [key for key, _, _, _ in found.asked],
        "paid": [key for key, _, _ in found.paid],
    }


def done_again(found: Found, things: Mapping[str, Sequence[str]]) -> list[str]:
    """What was done more than once about one thing, though nobody died. Only of a run that nobody disturbed is that
    wrong.
    """
    if found.of("killed") or found.of("died"):
        return []
    return [f"{what} {len(a)} times for {len(set(a))}" for what, a in things.items() if len(a) > len(set(a))]


def numbers(run: Mapping[str, Any], found: Found) -> Iterator[str]:
    """As many of everything as the run is to have, each under a key of its own."""

    def keys(kind: str, operation: str) -> int:
        return len({record["idempotency_key"] for record in found.sent(kind, operation)})

    asked = run["refunds"] + run["declined"]
    if (closed := len({event["id"] for event in found.of("closed")})) != run["tickets"]:
        yield f"closed {closed} times, {run['tickets']} due"
    if (replies := keys("response", "reply")) != run["issues"]:
        yield f"{replies} replies for {run['issues']} issues"
    if len(worded(found)) > replies:
        yield "one reply in two wordings"
    if (questions := keys("command", "approve")) != asked:
        yield f"{questions} questions, {asked} due"
    if (refunds := keys("command", "refund")) != run["refunds"]:
        yield f"{refunds} refunds, {run['refunds']} due"
    if found.dead or found.of("dead_letter"):
        yield f"{max(found.dead, len(found.of('dead_letter')))} dead letters"


def money(run: Mapping[str, Any], found: Found) -> Iterator[str]:
    """What was handed over is paid, once, as the ledger has it; and the bank is not asked after the ledger is done."""
    paid = sorted({key for key, _, _ in found.paid})
    requested = {(key, cents, customer) for key, cents, customer, _ in found.asked}
    handed = {refund(record) for record in found.sent("command", "refund")}
    entered = {(key, entry["cents"]) for key, entry in found.ledger.items()}
    if len(found.paid) != run["refunds"]:
        yield f"paid {len(found.paid)} times, {run['refunds']} due"
    if run["ledger"] and paid != sorted(found.ledger):
        yield f"paid {paid}, in the ledger {sorted(found.ledger)}"
    if not set(found.paid) == requested == handed:
        yield f"paid {sorted(set(found.paid))}, asked {sorted(requested)}, handed over {sorted(handed)}"
    if run["ledger"] and {(key, cents) for key, cents, _ in found.paid} != entered:
        yield f"amounts in the ledger: {sorted(entered)}"
    if any(entry["state"] != "done" for entry in found.ledger.values()):
        yield "a refund that is not done in the ledger"
    if asked_again(found):
        yield "the bank was asked after the ledger was done"


def repeated(found: Found) -> Iterator[str]:
    """Work that must not be done again."""
    held = Counter(event["step"] for event in found.of("holding"))
    if max(held.values(), default=0) > 1:
        yield f"held {max(held.values())} times"
    if late(found.of("looking_up"), found.lane):
        yield "a lookup after a recorded result"


def otherwise(found: Found, outcome: Outcome, expected: Outcome) -> Iterator[str]:
    """What is otherwise than in the same run without a kill."""
    for what in sorted(set(outcome) - {"events"}):
        if outcome[what] != expected[what]:
            yield f"otherwise: {what} {difference(outcome[what], expected[what])}"
    for event in missing(found, expected["events"]):
        yield f"not on the log: {event}"
    for event in outcome["events"]:
        if event not in expected["events"]:
            yield f"on the log too: {event}"


def refund(record: Mapping[str, Any]) -> tuple[str, int, str]:
    """What a command to refund says is to be paid: key, cents, customer."""
    body = json.loads(record["body"])
    return record["idempotency_key"], body["cents"], body["customer"]


def outcome_of(found: Found) -> dict[str, list[Any]]:
    """What must come of a run wherever it is killed. Which issue is the last of a ticket, and closes it, is timing."""
    outcome = {
        "paid": sorted(set(found.paid)),
        "replies": sorted(worded(found)),
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


def worded(found: Found) -> set[tuple[str, str]]:
    """The replies that were sent: key and words."""
    return {(r["idempotency_key"], bytes(r["body"]).decode()) for r in found.sent("response", "reply")}


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


def misdecided(found: Found) -> Iterator[str]:
    """Where something else was done than the answer that came first says."""
    answers: dict[str, tuple[bool, str, str]] = {}
    for record in found.sent("command", "decide"):
        body = json.loads(record["body"])
        answers.setdefault(body["handoff"], (body["ok"], body["by"], record["idempotency_key"]))
    stored = {step: (d["ok"], d["by"], d["answer"]) for step, d in found.decisions.items()}
    if stored != answers:
        yield f"stored {sorted(stored.items())}, answered {sorted(answers.items())}"
    acted: dict[str, set[tuple[bool, str]]] = {step: set() for step in answers}
    for event in [*found.of("approved"), *found.of("declined")]:
        acted.setdefault(event["step"], set()).add((event["kind"] == "approved", event["by"]))
    handed = {json.loads(r["body"])["handoff"] for r in found.sent("command", "refund")}
    ends = {issue: end for case in found.cases.values() for issue, end in case["issues"].items()}
    for step, (ok, by, _) in answers.items():
        done = (acted[step], step in handed, ends.get(step))
        if done != ({(ok, by)}, ok, "refunded" if ok else "declined"):
            yield f"the first answer to {step} was {'yes' if ok else 'no'} by {by}, done was {done}"


def misclosed(found: Found) -> Iterator[str]:
    """Where a ticket was closed by another issue, or as something else, than its case has; or its session has not ended."""
    closed = {(e["ticket"], e["step"], e.get("state")) for e in found.of("closed")}
    due = {(t, c["closed_by"], c["issues"].get(c["closed_by"])) for t, c in found.cases.items()}
    if closed != due:
        yield f"closed {sorted(closed)}, in the cases {sorted(due, key=str)}"
    tickets = by_conversation(found.lane)
    ended = {
        tickets.get(record["conversation"])
        for record in found.sent("status", "session")
        if record.get("last") and record["task_state"] == _COMPLETED
    }
    if lasting := sorted({ticket for ticket, _, _ in closed} - ended):
        yield f"closed, and the session goes on: {', '.join(lasting)}"


def miswritten(found: Found) -> Iterator[str]:
    """Where a customer was sent other words than were saved for it before, or what was saved was not sent."""
    saved = {(key, text["text"]) for key, text in found.texts.items()}
    if (sent := worded(found)) != saved:
        yield f"sent {sorted(sent - saved)}, saved {sorted(saved - sent)}"


def disordered(found: Found) -> Iterator[str]:
    """Where something was done before what it follows from. Whoever goes on after a kill says first what he found, so
    the first events of an issue, whoever wrote them, are in this order. What is not there at all is judged elsewhere.
    """
    firsts: dict[str, dict[str, int]] = {}
    closed: dict[str, int] = {}
    tickets: dict[str, str] = {}
    for number, event in enumerate(found.events):
        what = _ORDER.get(f"ledger {event['state']}" if event["kind"] == "ledger" else event["kind"])
        if what == "closed":
            closed.setdefault(event["ticket"], number)
        elif what:
            firsts.setdefault(event["step"], {}).setdefault(what, number)
            tickets[event["step"]] = event["ticket"]
    for step, seen in firsts.items():
        if tickets[step] in closed:
            seen["closed"] = closed[tickets[step]]
        there = [what for what in dict.fromkeys(_ORDER.values()) if what in seen]
        for earlier, later in pairwise(there):
            if seen[later] < seen[earlier]:
                yield f"{step}: {later} before {earlier}"


def redone(found: Found) -> Iterator[str]:
    """A reply by a process that came up when its ticket was closed, and a question put again when everybody who was
    there before the log had it is dead. Who was up before may have looked too early, and been stopped.
    """
    closed: dict[str, float] = {}
    for event in found.of("closed"):
        closed[event["ticket"]] = min(event["at"], closed.get(event["ticket"], event["at"]))
    for event in found.of("reply"):
        ups = [up["at"] for up in found.of("agent_up") if up["pid"] == event.get("pid")]
        came = max((up for up in ups if up <= event["at"]), default=0.0)
        if closed.get(event["ticket"], came) < came:
            yield f"a reply in {event['ticket']} by a process that came when that was closed"
    put: dict[str, float] = {}
    for record in found.sent("command", "approve"):
        key, made = record["idempotency_key"], record["record"]
        since = put.setdefault(key, record["arrived"]) + _SAME_MOMENT
        at = int.from_bytes(made[:6], "big") / 1000  # an id begins with its milliseconds
        if at > since and not unaware(found, record, since, at):
            yield f"{key} was put again although it was in the session"


def unaware(found: Found, record: Mapping[str, Any], since: float, until: float) -> list[int]:
    """The processes that were about to put this question, that came up before a time, and that may have lived until a
    later one: nobody came to replace them after their death.
    """
    ups = [
        (event["pid"], event["at"]) for event in found.of("agent_up") if event["agent"] == record["source"]
    ]
    deaths = [(event["pid"], event["at"]) for event in [*found.of("killed"), *found.of("died")]]
    step = json.loads(record["body"])["handoff"]
    decided = {event["pid"] for event in found.of("policy") if event["step"] == step}

    def replaced(pid: int, up: float) -> bool:
        return any(
            dead == pid and up < death < next_up < until for dead, death in deaths for _, next_up in ups
        )

    return [pid for pid, up in ups if pid in decided and up <= since and not replaced(pid, up)]


def by_conversation(lane: Sequence[Mapping[str, Any]]) -> dict[Any, str]:
    """Conversation -> ticket."""
    return {
        r["conversation"]: json.loads(r["body"])["ticket"] for r in lane if r.get("operation") == "triage"
    }


def difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """What is there and should not be, and the other way round; the first of each."""
    more = [item for item in found if item not in expected][:1]
    less = [item for item in expected if item not in found][:1]
    return f"{more} instead of {less}"


def late(lookups: Sequence[Mapping[str, Any]], lane: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an order was looked up again although the ticket's session held its record."""
    tickets = by_conversation(lane)
    calls = [record for record in lane if record.get("tool") == "order_lookup"]
    orders = {c["correlation"]: json.loads(c["body"])["order"] for c in calls if c["kind"] == "command"}
    known = [
        (tickets[c["conversation"]], f"order {orders[c['correlation']]}", c["arrived"])
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
