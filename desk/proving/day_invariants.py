"""Judge delivery days by what is durable: the log, key-value state, the views, forks, positions and customer memory.

A script that imports nothing of the desk, so that it cannot share the desk's mistakes:
`python day_invariants.py CONNECTION < runs > verdicts`, JSON lines both ways. A run is {"stream", "disputes", "answer",
"expected"}: its stream, how many disputes its bill is worth, what its person says to one ("approved", "declined", or
"undecided": nothing in time), and the outcome of the same day without a kill, or null. A verdict is {"stream",
"violations": [sentences], "raw": {what: how often, repeats counted}, "repeated": [sentences], "outcome"}. An event
that is on the log twice under one id is one event, and shows in "raw"; a customer reads each text that was sent, so
wordings are counted before repeats are dropped.
"""

import asyncio
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cbor2
import laser_sdk as ls

Event = Mapping[str, Any]
Outcome = Mapping[str, list[Any]]

_LIMIT = 1_000  # the largest page there is
_MEMORY = "fleet-memory", "customer.memory"
"""The stream and topic of what is remembered of customers, which all days of a stack share."""
_TICK = 0.36  # demo minutes between two position reports of a van
_ENDS = ("delivered", "failed", "returned")
_ACTED = {"approved": "disputed", "declined": "paid", "undecided": "undecided"}
"""What comes of what a person says."""
_UNDELAYED = ("order", "bill")
"""Exceptions that make no customer wait."""
_EARLIER = re.compile(r" Sorry, this is the \w+ time we've been late to you, and we've flagged it\.")
"""Counts the earlier days of the stack too, which is another number in each run."""
_OF_LIVES = frozenset({"agent_up", "died", "killed", "start", "checkpoint", "replay", "holding", "resume"})
_OF_TROUBLE = frozenset({"retry", "dead_letter", "parked", "fixed", "redriven"})
"""Kinds of events that another day need not have: how often depends on who is killed where, and on real time."""
_WORK = ("start", "checkpoint", "replay", "holding", "told", "fork", "asked")
"""What is said while a step is done, and not by who finds its result saved."""
_STAGES = (
    ("failed", "order", "bill"),
    ("exception",),
    ("start assess",),
    ("step assess",),
    ("start replan", "start assign"),
    ("checkpoint replan", "checkpoint assign", "replay replan", "replay assign"),
    ("step replan", "step assign"),
    ("start notify",),
    ("told notify",),
    ("step notify",),
    ("start invoice-check",),
    ("fork invoice-check",),
    ("asked invoice-check",),
    ("disputed", "paid", "undecided"),
    ("step invoice-check",),
    ("bill_answer",),
    ("closed",),
)
"""What the events of an exception say, in the order in which each is first said: by any one of a line."""
_STAGE = {what: number for number, line in enumerate(_STAGES) for what in line}
_SHOWN = 300  # characters of a difference


@dataclass(frozen=True)
class Day:
    """What is durable of a day: every event in log order, how many dead letters, key-value state, position reports in
    order, what was remembered of customers in it (id, customer, incident, what), forks, what dispatch asked of agents
    (workflow run, incident, step, when it was made), the steps the journal has as completed (workflow run, step, when
    the log took that), views. Times in epoch seconds.
    """

    everything: Sequence[Event]
    dead: int
    rounds: Mapping[str, Any]
    exceptions: Mapping[str, Any]
    stops: Mapping[str, Any]
    parked: Mapping[str, Any]
    results: Mapping[str, Any]
    decisions: Mapping[str, Any]
    faults: Mapping[str, Any]
    cursors: Mapping[str, Any]
    positions: Sequence[Mapping[str, Any]]
    memories: Sequence[tuple[str, str, str, str]]
    forks: Sequence[str]
    commands: Sequence[tuple[str, str, str, float]]
    journal: Sequence[tuple[str, str, float]]
    views: Mapping[str, Counter[tuple[str, str]]]

    @property
    def events(self) -> list[Event]:
        """The events, each once, where it came first."""
        once: dict[str, Event] = {}
        for event in self.everything:
            once.setdefault(event["id"], event)
        return list(once.values())

    def of(self, *kinds: str) -> list[Event]:
        """The events of these kinds, each once."""
        return [event for event in self.events if event["kind"] in kinds]


# -- reading


async def read(topic: Any) -> list[Any]:
    """Every message of a topic."""
    rows, found = topic.replay(), []
    while messages := await rows.poll():
        found += messages
    return found


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


async def remembered(laser: ls.Laser, day: str) -> list[tuple[str, str, str, str]]:
    """What was remembered of customers in this day: (id, customer, incident, what), repeats included."""
    stream, topic = _MEMORY
    found = []
    for message in await read(laser.stream(stream).topic(topic)):
        item = cbor2.loads(bytes(message.payload))["Item"]
        body = json.loads(bytes(item["body"]))
        if body["incident"].startswith(f"{day}-"):
            found.append((item["id"], message.headers["agdx.mem.user"], body["incident"], body["what"]))
    return found


async def commands(laser: ls.Laser) -> list[tuple[str, str, str, float]]:
    """What dispatch asked of agents, repeats included: (workflow run, incident, step, when it was made)."""
    found = []
    for message in await read(laser.topic("desk.inbox")):
        record = cbor2.loads(bytes(message.payload))
        if record["kind"] == "command" and record["source"] == "dispatch":
            body = json.loads(record["body"])
            incident = body["exc"]["id"] if "exc" in body else body["incident"]
            made = int.from_bytes(record["record"][:6], "big") / 1000  # an id begins with its milliseconds
            run = message.headers.get("agdx.parent_conv", "")
            found.append((run, incident, body.get("step", ""), made))
    return found


async def journalled(laser: ls.Laser) -> list[tuple[str, str, float]]:
    """The steps that workflows have completed, repeats included: (workflow run, step, when the log took that). A
    process may have been stopped while it sent that, so when it was made does not tell.
    """
    topic, found = laser.topic("agent.workflow_journal"), []
    rows = topic.replay()
    while await rows.poll():
        pass
    for partition, head in enumerate(rows.offsets):
        reader = topic.consumer(
            "judge", partition=partition, polling="offset", offset=0, auto_commit="disabled", allow_replay=True
        )  # fmt: skip
        for _ in range(head):
            message = await reader.next()
            if entry := cbor2.loads(bytes(message.payload)).get("StepCompleted"):
                run = message.headers["gen_ai.conversation.id"]
                found.append((run, entry["label"], message.timestamp_micros / 1e6))
        await reader.shutdown()
    return found


async def judge(connection: str, run: dict[str, Any]) -> dict[str, Any]:
    """One day's verdict."""
    laser = await ls.Laser.connect(connection, stream=run["stream"], connect_timeout_ms=10_000)
    found = Day(
        everything=[message.json() for message in await read(laser.topic("fleet.events"))],
        dead=len(await read(laser.topic("agent.dlq"))),
        rounds=await kept(laser, "rounds"),
        exceptions=await kept(laser, "exceptions"),
        stops=await kept(laser, "stops"),
        parked=await kept(laser, "parked"),
        results=await kept(laser, "results"),
        decisions=await kept(laser, "decisions"),
        faults=await kept(laser, "faults"),
        cursors=await kept(laser, "cursors"),
        positions=[message.json() for message in await read(laser.topic("fleet.positions"))],
        memories=await remembered(laser, day_of(run)),
        forks=[fork for fork in map(str, await laser.forks()) if day_of(run) in fork],
        commands=await commands(laser),
        journal=await journalled(laser),
        views={kind: await viewed(laser, kind) for kind in _ENDS},
    )
    await laser.close()
    return verdict(run, found)


def day_of(run: Mapping[str, Any]) -> str:
    """The name of a run's day, with which the names of its incidents begin."""
    return run["stream"].removeprefix("fleet-")


# -- judging, pure from here on


def verdict(run: Mapping[str, Any], found: Day) -> dict[str, Any]:
    """What is to be said of a day's records."""
    outcome = outcome_of(day_of(run), found)
    violations = [
        *parcels(found),
        *exceptions(found),
        *steps(found),
        *changes(found),
        *texts(found),
        *memories(found),
        *reports(found),
        *bill(run, found),
        *unsaid(found),
        *disordered(found),
        *again(found),
        *redone(found),
        *otherwise(outcome, run["expected"] or outcome),
    ]
    things = counted(found)
    raw = {**{what: len(times) for what, times in things.items()}, "dead letters": found.dead}
    said = {"violations": violations, "raw": raw, "repeated": repeated(found, things)}
    return {"stream": run["stream"], **said, "outcome": outcome}


def counted(found: Day) -> dict[str, list[tuple[str, ...]]]:
    """Each thing that is counted raw: what it was about each time, the incident first where it is of one."""

    def about(kind: str, *more: str) -> list[tuple[str, ...]]:
        names = ("incident", *more)
        return [tuple(e.get(name) or "" for name in names) for e in found.everything if e["kind"] == kind]

    return {
        "messages": [(incident, step) for _, incident, step, _ in found.commands],
        "starts": about("start", "step"),
        "plans": about("checkpoint", "step"),
        "replays": about("replay", "step"),
        "resumes": about("resume"),
        "holds": about("holding", "step"),
        "steps": about("step", "step"),
        "told": about("told", "stop"),
        "remembered": [(incident, customer) for _, customer, incident, _ in found.memories],
        "asked": about("asked"),
        "forks": about("fork"),
        "closed": about("closed"),
        "parcels": [(e["stop"],) for e in found.everything if e["kind"] in ("delivered", "returned")],
        "disputes": [*about("disputed"), *about("paid"), *about("undecided")],
    }


def repeated(found: Day, things: Mapping[str, Sequence[tuple[str, ...]]]) -> list[str]:
    """What was done more than once about one thing, though nobody died, nothing of the incident was tried again and no
    message was lost. Only of a day that nobody disturbed is that wrong.
    """
    if found.of("killed", "died"):
        return []
    tried_again = {event.get("incident") for event in found.of(*_OF_TROUBLE)}
    if None in tried_again:  # a dead letter of nobody knows which
        return []
    calm = {what: [a for a in times if a[0] not in tried_again] for what, times in things.items()}
    return [f"{what} {len(a)} times for {len(set(a))}" for what, a in calm.items() if len(a) > len(set(a))]


def parcels(found: Day) -> Iterator[str]:
    """Each parcel ends once, and the views know."""
    ended = Counter(event["stop"] for event in found.of("delivered", "returned"))
    if wrong := unequal(ended, set(found.stops)):
        yield f"parcels not ended once: {wrong}"
    if left := [
        van for van, value in found.rounds.items() if value["drops"] or value["retry"] or value["back"]
    ]:
        yield f"parcels left on {', '.join(left)}"
    logged = {
        kind: Counter((e["van"], e["stop"]) for e in found.everything if e["kind"] == kind) for kind in _ENDS
    }
    if found.views != logged:
        yield "the views and the log differ"


def exceptions(found: Day) -> Iterator[str]:
    """Each exception is closed once, on the log and in key-value state."""
    opened = {event["incident"] for event in found.of("exception")}
    if wrong := unequal(Counter(event["incident"] for event in found.of("closed")), opened):
        yield f"exceptions not closed once: {wrong}"
    if opened != set(found.exceptions):
        yield "exceptions on the log and in KV differ"
    if any(exception["state"] != "closed" for exception in found.exceptions.values()):
        yield "an exception is open in KV"


def steps(found: Day) -> Iterator[str]:
    """Each step that was begun is completed once, and nothing is held twice."""
    begun = {(event["incident"], event["step"]) for event in found.of("start")}
    done = Counter((event["incident"], event["step"]) for event in found.of("step"))
    if wrong := unequal(done, begun):
        yield f"steps not completed once: {wrong}"
    if max(Counter(event["incident"] for event in found.of("holding")).values(), default=0) > 1:
        yield "a hold was repeated"


def changes(found: Day) -> Iterator[str]:
    """Each change of a round is made once: to the van it is about, and to the one that takes over."""
    if twice := [
        van for van, value in found.rounds.items() if len(value["applied"]) != len(set(value["applied"]))
    ]:
        yield f"a change was applied twice to {', '.join(twice)}"
    applied = Counter(incident for value in found.rounds.values() for incident in set(value["applied"]))
    if any(applied[incident] > 2 for incident in found.exceptions):
        yield "a change is in more than two rounds"


def texts(found: Day) -> Iterator[str]:
    """Each customer is told each thing once; what could not be sent was parked, and was sent in the end."""
    told = found.of("told")
    keys = {(event["incident"], event["stop"]) for event in told}
    if len(told) != len(keys):
        yield "a customer was told one thing under two keys"
    if len({(e["incident"], e["stop"], e["text"]) for e in found.everything if e["kind"] == "told"}) != len(
        keys
    ):
        yield "told in two wordings"
    if found.parked:
        yield f"a message is left parked: {', '.join(found.parked)}"
    if unparked := [event for event in found.of("dead_letter") if event["agent"] != "customer"]:
        yield f"{len(unparked)} dead letters that nobody parked"


def memories(found: Day) -> Iterator[str]:
    """Each delay is remembered once of each customer who was written to about it. One id is one memory."""
    due = {
        (message["customer"], incident)
        for incident, exception in found.exceptions.items()
        if exception["kind"] not in _UNDELAYED
        for message in found.results.get(f"{incident}:messages", ())
    }
    known = {(memory, customer, incident) for memory, customer, incident, _ in found.memories}
    if wrong := unequal(Counter((customer, incident) for _, customer, incident in known), due):
        yield f"delays not remembered once: {wrong}"


def reports(found: Day) -> Iterator[str]:
    """A van's reports never go back, unless a simulator was replaced before it was dead."""
    lives, deaths = simulators(found, "agent_up"), simulators(found, "died", "killed")
    for van, own in reported(found).items():
        if lives <= deaths + 1 and any(b[0] < a[0] or b[1] < a[1] for a, b in itertools.pairwise(own)):
            yield f"the reports of {van} go back"


def gaps(found: Day) -> list[str]:
    """Vans that were not reported at every tick. A simulator that died had some reports in hand; a watched one skips
    ticks when it lags.
    """
    return [
        van
        for van, own in reported(found).items()
        if simulators(found, "agent_up") <= 1
        and any(b[0] - a[0] > _TICK + 1e-6 for a, b in itertools.pairwise(own))
    ]


def reported(found: Day) -> dict[str, list[tuple[float, float]]]:
    """Each van's reports in order: minute and metres."""
    vans: dict[str, list[tuple[float, float]]] = {}
    for report in found.positions:
        vans.setdefault(report["van"], []).append((report["minute"], report["metres"]))
    return vans


def simulators(found: Day, *kinds: str) -> int:
    """How many events of these kinds are about a simulator."""
    return sum(event["agent"] == "simulator" for event in found.of(*kinds))


def bill(run: Mapping[str, Any], found: Day) -> Iterator[str]:
    """There is one bill, a person is asked about it when it is worth it, and what the person says is done."""
    due = {run["answer"]} if run["disputes"] else set()
    ends = found.of("disputed", "paid", "undecided")
    name = f"{day_of(run)}-bill:check"
    check = found.results.get(name, {})
    acted = {event["kind"] for event in ends}
    if run["disputes"]:
        acted |= {check.get("outcome")}
    answers = {decision["answer"] for decision in found.decisions.values()}
    bills = {event["bill"]["total"] for event in found.of("bill")}
    if len(bills) != 1:
        yield f"{len(bills)} bills"
    if name not in found.results:
        yield "no saved check of the bill"
    if len(ends) != run["disputes"]:
        yield f"{len(ends)} outcomes of the bill, {run['disputes']} due"
    if len(found.decisions) != run["disputes"]:
        yield f"{len(found.decisions)} decisions stored, {run['disputes']} due"
    if answers != due:
        yield f"decided {sorted(answers)}, a person said {sorted(due)}"
    if acted != {_ACTED[answer] for answer in due}:
        yield f"{sorted(map(str, acted))} came of what a person said: {sorted(due)}"
    by = {decided["by"] for decided in (*found.decisions.values(), *ends)}
    if due and by != {whose := "nobody" if due == {"undecided"} else "person"}:
        yield f"decided by {sorted(by)}, {whose} due"
    asked = {event["hold"] if "disputed" in acted else 0 for event in found.of("asked")}
    if run["disputes"] and asked != {check.get("hold")}:
        yield f"{check.get('hold')} held back, {sorted(asked)} due"
    if found.forks:
        yield f"{len(found.forks)} forks left"


def unsaid(found: Day) -> Iterator[str]:
    """What a process that ended a piece of work cannot have done without saying so.

    Who ends a step it has begun has either made the plan (`checkpoint`, then `holding` on a day that holds), or found
    it (`replay`); the latter when it began after the checkpoint. Who asks a person has shown the bill on a fork. Who
    closes an exception that is older than itself has resumed it.
    """
    making = ("checkpoint", "holding") if found.of("holding") else ("checkpoint",)
    said: dict[tuple[Any, ...], int] = {}
    """Where on the log a process says something last: (kind, incident, step, pid)."""
    first: dict[tuple[Any, ...], int] = {}
    """Where anybody says it first: (kind, incident, step)."""
    for at, event in enumerate(found.everything):
        about = (event["kind"], event.get("incident"), event.get("step"))
        said[*about, event.get("pid")] = at
        first.setdefault(about, at)
    for event in found.everything:
        kind, incident, step, pid = event["kind"], event.get("incident"), event.get("step"), event.get("pid")
        begun = said.get(("start", incident, step, pid))
        if kind == "step" and step in ("replan", "assign") and begun is not None:
            found_it = ("replay", incident, step, pid) in said
            made_it = all((one, incident, step, pid) in said for one in making)
            if not found_it and (not made_it or first["checkpoint", incident, step] < begun):
                yield f"{step} of {incident} ended with neither a plan nor a replay on the log"
        if kind == "asked" and ("fork", incident, step, pid) not in said:
            yield f"asked about {incident} without a fork on the log"
        if kind == "closed":
            up = said.get(("agent_up", None, None, pid), -1)
            if (
                first.get(("exception", incident, None), up) < up
                and ("resume", incident, None, pid) not in said
            ):
                yield f"{incident} closed by a process that never resumed it"


def disordered(found: Day) -> Iterator[str]:
    """Where something of an exception was done before what it follows from: a customer told before the plan is there,
    a step ended before all are told, a bill dealt with before anybody was asked, an exception closed before its last
    step. Whoever goes on after a kill says first what he found, so what is said first, whoever said it, is in this
    order. What is not there at all is judged elsewhere.
    """
    said: dict[str, dict[int, list[tuple[int, str]]]] = {}
    for at, event in enumerate(found.events):
        what = " ".join(filter(None, (event["kind"], event.get("step"))))
        if event.get("incident") and what in _STAGE:
            of_it = said.setdefault(event["incident"], {})
            of_it.setdefault(_STAGE[what], []).append((at, what))
    for incident, stages in said.items():
        for before, after in itertools.pairwise(sorted(stages)):
            earlier, later = stages[before], stages[after][0]
            # One who did not know that the work was done may begin it late; texts are told by key, each once.
            due = earlier[-1] if earlier[0][1] == "told notify" else earlier[0]
            if later < due:
                yield f"{incident}: {later[1]} before {due[1]}"


def again(found: Day) -> Iterator[str]:
    """A workflow goes on from its journal: whoever resumes it, or runs it again, does not ask for a step that the
    journal had as completed by then. One that was stopped and goes on may have asked before it could know.
    """
    incidents = {run: incident for run, incident, _, _ in found.commands}
    begun: dict[str, list[float]] = {}
    for event in found.of("resume", "retry"):
        begun.setdefault(event["incident"], []).append(event["at"])
    done: dict[tuple[str, str], float] = {}
    for run, step, taken in found.journal:
        about = (incidents.get(run, ""), step)
        done[about] = min(taken, done.get(about, taken))
    for _, incident, step, made in found.commands:
        known = done.get((incident, step), made)
        if any(known < since < made for since in begun.get(incident, ())):
            yield f"{step} of {incident} was asked for again although the journal had it"


def redone(found: Day) -> Iterator[str]:
    """What was done of a step, or asked of a person, by a process that came up when the log had the step as done, or
    what came of the answer: that is saved before it is said, so it was there to be found. One that was up before may
    have looked too early, and been stopped.
    """
    over: dict[tuple[str, str], float] = {}
    ups: dict[int, list[float]] = {}
    for event in found.everything:
        if event["kind"] == "agent_up":
            ups.setdefault(event["pid"], []).append(event["at"])
        elif event["kind"] == "step" and event.get("state") == "done":  # a refused check is saved nowhere
            about = (event["incident"], event["step"])
            over[about] = min(event["at"], over.get(about, event["at"]))
        elif event["kind"] in _ACTED.values():
            about = (event["incident"], "asked")
            over[about] = min(event["at"], over.get(about, event["at"]))
    late = set()
    for event in found.everything:
        kind, incident, step = event["kind"], event.get("incident"), event.get("step")
        if kind not in _WORK:
            continue
        came = max((up for up in ups.get(event["pid"], ()) if up <= event["at"]), default=0.0)
        ends = [over.get((incident, step), came), over.get((incident, kind), came)]
        if min(ends) < came:
            late.add((kind, incident, step))
    for kind, incident, step in sorted(late):
        yield f"{kind} {step} of {incident} by a process that came when that was over"


def otherwise(outcome: Outcome, expected: Outcome) -> Iterator[str]:
    """What is otherwise than on the same day without a kill."""
    for what in sorted(set(outcome) - {"events"}):
        if outcome[what] != expected[what]:
            yield f"another day: {what} {difference(outcome[what], expected[what])}"
    lost = [event for event in expected["events"] if event not in outcome["events"]]
    more = [event for event in outcome["events"] if event not in expected["events"]]
    if lost:
        yield f"not on the log: {listed(lost)}"
    if more:
        yield f"on the log too: {listed(more)}"


def outcome_of(day: str, found: Day) -> dict[str, list[Any]]:
    """What must come of a day wherever somebody is killed in it, without its name, as JSON has it."""
    cases = {name: {**value, "run": ""} for name, value in found.exceptions.items()}
    last = {report["van"]: report for report in sorted(found.positions, key=lambda report: report["minute"])}
    outcome = {
        "rounds": sorted(found.rounds.items()),
        "exceptions": sorted(cases.items()),
        "stops": sorted(found.stops.items()),
        "results": sorted(found.results.items()),
        "decisions": sorted(found.decisions.items()),
        "faults": sorted(found.faults.items()),
        "roster": [found.cursors.get("roster")],
        "memories": sorted({(customer, incident, what) for _, customer, incident, what in found.memories}),
        "positions": sorted(last.items()),
        "gaps": gaps(found),
        "events": sorted(
            {place(event) for event in found.everything if event["kind"] not in _OF_LIVES | _OF_TROUBLE}
        ),
    }
    text = json.dumps(outcome, ensure_ascii=False, sort_keys=True)
    return json.loads(re.sub(rf"\b{day}\b", "day", _EARLIER.sub("", text)))


def place(event: Event) -> str:
    """What an event says, whoever says it, and when only if the clock's own process does: agents work in real time."""
    left = {"id", "at", "pid", "kind"} | ({"minute"} if event["agent"] != "simulator" else {"agent"})
    said = {name: value for name, value in event.items() if name not in left}
    if event["agent"].startswith("routing-"):
        said["agent"] = "routing"
    return f"{event['kind']} {json.dumps(said, ensure_ascii=False, sort_keys=True)}"


def unequal(counted: Counter[Any], due: set[Any]) -> str:
    """What is not there once, or is and should not be."""
    wrong = [key for key in set(counted) | due if counted[key] != int(key in due)]
    return ", ".join(":".join(key) if isinstance(key, tuple) else key for key in sorted(wrong))


def listed(events: Sequence[str]) -> str:
    """How many events there are, and the beginning of the first."""
    return events[0][:_SHOWN] + (f" and {len(events) - 1} more" if len(events) > 1 else "")


def difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """What is there and should not be, and the other way round; the beginning of the first of each."""
    more = [item for item in found if item not in expected][:1]
    less = [item for item in expected if item not in found][:1]
    return f"{str(more)[:_SHOWN]} instead of {str(less)[:_SHOWN]}"


async def main(connection: str) -> None:
    for line in sys.stdin:
        print(json.dumps(await judge(connection, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
