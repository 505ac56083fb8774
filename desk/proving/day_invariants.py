"""Judge delivery days by what is durable: the log, key-value state, the views and the forks.

A script that imports nothing of the desk, so that it cannot share the desk's mistakes:
`python day_invariants.py CONNECTION < runs > verdicts`, JSON lines both ways. A run is {"stream", "disputes", "answer",
"expected"}: its stream, how many disputes its bill is worth, what its person says to one ("approved" or "declined"),
and the outcome of the same day without a kill, or null. A verdict is {"stream", "violations": [sentences], "raw":
{what: how often, repeats counted}, "outcome"}. An event that is on the log twice under one id is one event, and shows
in "raw"; a customer reads each text that was sent, so wordings are counted before repeats are dropped.
"""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import laser_sdk as ls

_LIMIT = 1_000  # the largest page there is
_ENDS = ("delivered", "failed", "returned")
_ACTED = {"approved": "disputed", "declined": "paid"}
"""What comes of what a person says."""
_EARLIER = re.compile(r" Sorry, this is the \w+ time we've been late to you, and we've flagged it\.")
"""Counts the earlier days of the stack too, which is another number in each run."""


@dataclass(frozen=True)
class Day:
    """What is durable of a day: every event in log order, how many dead letters, key-value state, forks, views."""

    everything: Sequence[Mapping[str, Any]]
    dead: int
    rounds: Mapping[str, Any]
    exceptions: Mapping[str, Any]
    stops: Mapping[str, Any]
    parked: Mapping[str, Any]
    results: Mapping[str, Any]
    decisions: Mapping[str, Any]
    forks: Sequence[str]
    views: Mapping[str, Counter[tuple[str, str]]]


async def read(laser: ls.Laser, topic: str) -> list[Any]:
    """Every message of a topic."""
    return list(await laser.topic(topic).replay().poll())


async def kept(laser: ls.Laser, namespace: str) -> dict[str, Any]:
    """Everything in a key-value namespace."""
    entries = await laser.kv(namespace).scan().entries()
    return {bytes(entry.key).decode(): json.loads(bytes(entry.value)) for entry in entries}


async def viewed(laser: ls.Laser, kind: str) -> Counter[tuple[str, str]]:
    """How often the view of events has a kind, by van and stop."""
    query = laser.query("fleet_events").where_eq("kind", kind).count().group_by(["van", "stop"])
    result = await query.limit(_LIMIT).fetch()
    names = [field["name"] for field in result.fields]
    rows = [{n: (result.value(row, n) or {}).get("value") for n in names} for row in result.rows]
    return Counter({(row["van"], row["stop"]): row["count"] for row in rows})


async def judge(connection: str, run: dict[str, Any]) -> dict[str, Any]:
    """One day's verdict."""
    laser = await ls.Laser.connect(connection, stream=run["stream"], connect_timeout_ms=10_000)
    found = Day(
        everything=[message.json() for message in await read(laser, "fleet.events")],
        dead=len(await read(laser, "agent.dlq")),
        rounds=await kept(laser, "rounds"),
        exceptions=await kept(laser, "exceptions"),
        stops=await kept(laser, "stops"),
        parked=await kept(laser, "parked"),
        results=await kept(laser, "results"),
        decisions=await kept(laser, "decisions"),
        forks=[fork for fork in map(str, await laser.forks()) if _day(run) in fork],
        views={kind: await viewed(laser, kind) for kind in _ENDS},
    )
    await laser.close()
    return verdict(run, found)


def _day(run: Mapping[str, Any]) -> str:
    return run["stream"].removeprefix("fleet-")


def verdict(run: Mapping[str, Any], found: Day) -> dict[str, Any]:
    """What is to be said of a day's records. Pure."""
    day, everything = _day(run), found.everything
    events = list({event["id"]: event for event in reversed(everything)}.values())[::-1]
    rounds, exceptions, stops = found.rounds, found.exceptions, found.stops
    results, decisions = found.results, found.decisions

    def of(*kinds: str) -> list[Mapping[str, Any]]:
        return [event for event in events if event["kind"] in kinds]

    def raw_of(*kinds: str) -> int:
        return sum(event["kind"] in kinds for event in everything)

    def steps(kind: str) -> Counter[tuple[str, str]]:
        return Counter((event["incident"], event["step"]) for event in of(kind))

    def unequal(counted: Counter[Any], due: set[Any]) -> str:
        wrong = [key for key in set(counted) | due if counted[key] != int(key in due)]
        return ", ".join(":".join(key) if isinstance(key, tuple) else key for key in sorted(wrong))

    ended = Counter(event["stop"] for event in of("delivered", "returned"))
    opened = {event["incident"] for event in of("exception")}
    closed = Counter(event["incident"] for event in of("closed"))
    begun, done = steps("start"), steps("step")
    told = of("told")
    told_keys = {(event["incident"], event["stop"]) for event in told}
    wordings = {(e["incident"], e["stop"], e["text"]) for e in everything if e["kind"] == "told"}
    applied = Counter(incident for value in rounds.values() for incident in set(value["applied"]))
    twice = [van for van, value in rounds.items() if len(value["applied"]) != len(set(value["applied"]))]
    left = [van for van, value in rounds.items() if value["drops"] or value["retry"] or value["back"]]
    logged = {kind: Counter((e["van"], e["stop"]) for e in everything if e["kind"] == kind) for kind in _ENDS}
    holds = Counter(event["incident"] for event in of("holding"))
    bills = {event["bill"]["total"] for event in of("bill")}
    ends = of("disputed", "paid", "undecided")
    check = results.get(f"{day}-bill:check", {})
    answers = {decision["answer"] for decision in decisions.values()}
    acted = {event["kind"] for event in ends} | ({check.get("outcome")} if run["disputes"] else set())
    due = {run["answer"]} if run["disputes"] else set()
    unparked = [e for e in of("dead_letter") if e["agent"] != "customer"]
    outcome = {
        "parcels": sorted([e["stop"], e["van"], e["kind"], e["minute"]] for e in of(*_ENDS)),
        "told": sorted([e[0].removeprefix(day), e[1], _EARLIER.sub("", e[2])] for e in wordings),
        "bill": sorted(bills),
        "dispute": [
            [check.get("outcome"), check.get("by"), check.get("hold")],
            *sorted([e["kind"], e.get("by"), e["text"]] for e in ends),
        ],
        "exceptions": sorted(incident.removeprefix(day) for incident in exceptions),
    }
    expected = run["expected"] or outcome

    violations = [
        sentence
        for holds_, sentence in [
            (not unequal(ended, set(stops)), f"parcels not ended once: {unequal(ended, set(stops))}"),
            (not unequal(closed, opened), f"exceptions not closed once: {unequal(closed, opened)}"),
            (opened == set(exceptions), "exceptions on the log and in KV differ"),
            (all(e["state"] == "closed" for e in exceptions.values()), "an exception is open in KV"),
            (not unequal(done, set(begun)), f"steps not completed once: {unequal(done, set(begun))}"),
            (len(told) == len(told_keys), "a customer was told one thing under two keys"),
            (len(wordings) == len(told_keys), "told in two wordings"),
            (not twice, f"a change was applied twice to {', '.join(twice)}"),
            (all(applied[e] <= 2 for e in exceptions), "a change is in more than two rounds"),
            (not left, f"parcels left on {', '.join(left)}"),
            (not found.parked, f"a message is left parked: {', '.join(found.parked)}"),
            (max(holds.values(), default=0) <= 1, "a hold was repeated"),
            (len(bills) == 1, f"{len(bills)} bills"),
            (len(ends) == run["disputes"], f"{len(ends)} outcomes of the bill, {run['disputes']} due"),
            (len(decisions) == run["disputes"], f"{len(decisions)} decisions stored, {run['disputes']} due"),
            (answers == due, f"decided {sorted(answers)}, a person said {sorted(due)}"),
            (acted == {_ACTED[answer] for answer in due},
             f"{sorted(map(str, acted))} came of what a person said: {sorted(due)}"),
            (f"{day}-bill:check" in results, "no saved check of the bill"),
            (not found.forks, f"{len(found.forks)} forks left"),
            (found.views == logged, "the views and the log differ"),
            (not unparked, f"{len(unparked)} dead letters that nobody parked"),
            *((outcome[what] == expected[what], f"another day: {what} {difference(outcome[what], expected[what])}")
              for what in outcome),
        ]
        if not holds_
    ]  # fmt: skip
    raw = {
        "starts": raw_of("start"),
        "plans": raw_of("checkpoint"),
        "replays": raw_of("replay"),
        "resumes": raw_of("resume"),
        "holds": raw_of("holding"),
        "steps": raw_of("step"),
        "told": raw_of("told"),
        "asked": raw_of("asked"),
        "forks": raw_of("fork"),
        "closed": raw_of("closed"),
        "parcels": raw_of("delivered", "returned"),
        "disputes": raw_of("disputed", "paid", "undecided"),
        "dead letters": found.dead,
    }
    return {"stream": run["stream"], "violations": violations, "raw": raw, "outcome": outcome}


def difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """What is there and should not be, and the other way round; the first of each."""
    more = [item for item in found if item not in expected][:1]
    less = [item for item in expected if item not in found][:1]
    return f"{more} instead of {less}"


async def main(connection: str) -> None:
    for line in sys.stdin:
        print(json.dumps(await judge(connection, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
