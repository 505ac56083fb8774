"""Judge a support desk's runs by what is durable: the log, key-value state and the bank's file.

A script that imports nothing of the desk, so that it cannot share the desk's mistakes:
`python invariants.py CONNECTION < runs > verdicts`, JSON lines both ways. A run is {"stream", "bank", "tickets",
"issues", "refunds", "declined", "ledger"}: its stream, the bank's file, how many tickets it has, how many issues and
how many approved and declined refunds they should have, and whether billing keeps a ledger. Its verdict is {"stream", "violations":
[sentences], "raw": {what: how often, repeats counted}}.
"""

import asyncio
import json
import sqlite3
import sys
from collections import Counter
from typing import Any

import cbor2
import laser_sdk as ls

_SAME_MOMENT = 0.002  # seconds: a record's id knows its time to a millisecond


def told(record: bytes) -> float:
    """When a record was made, in epoch seconds: the first 48 bits of its id (a ULID) are milliseconds."""
    return int.from_bytes(record[:6], "big") / 1000


async def read(laser: ls.Laser, topic: str) -> list[Any]:
    """Every message of a topic."""
    return list(await laser.topic(topic).replay().poll())


async def judge(connection: str, run: dict[str, Any]) -> dict[str, Any]:
    """One run's verdict."""
    laser = await ls.Laser.connect(connection, stream=run["stream"], connect_timeout_ms=10_000)
    events = [message.json() for message in await read(laser, "desk.events")]
    lane = [cbor2.loads(bytes(message.payload)) for message in await read(laser, "agent.sessions")]
    dead = await read(laser, "agent.dlq")
    ledger = {}
    for entry in await laser.kv("ledger").scan().entries():
        ledger[bytes(entry.key).decode()] = json.loads(bytes(entry.value))
    with sqlite3.connect(f"file:{run['bank']}?mode=ro", uri=True) as bank:
        asked = [key for (key,) in bank.execute("select key from asked")]
        paid = [key for (key,) in bank.execute("select key from paid")]

    def sent(kind: str, operation: str) -> list[dict[str, Any]]:
        return [e for e in lane if e["kind"] == kind and e.get("operation") == operation]

    def keys(records: list[dict[str, Any]]) -> list[str]:
        return [record["idempotency_key"] for record in records]

    replies, prompts = sent("response", "reply"), sent("command", "approve")
    refunds, answers = sent("command", "refund"), sent("command", "decide")
    closed = [event["id"] for event in events if event["kind"] == "closed"]
    lookups = [event for event in events if event["kind"] == "looking_up"]
    held = Counter(event["step"] for event in events if event["kind"] == "holding")
    asked_for = run["refunds"] + run["declined"]

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
            (all(e["state"] == "done" for e in ledger.values()), "a refund that is not done in the ledger"),
            (not dead and not any(e["kind"] == "dead_letter" for e in events), f"{len(dead)} dead letters"),
            (max(held.values(), default=0) <= 1, f"held {max(held.values(), default=0)} times"),
            (not late(lookups, lane), "a lookup after a recorded result"),
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
        "bank asked": len(asked),
        "paid": len(paid),
    }
    await laser.close()
    return {"stream": run["stream"], "violations": violations, "raw": raw}


def late(lookups: list[dict[str, Any]], lane: list[dict[str, Any]]) -> bool:
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
