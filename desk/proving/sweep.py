"""Which points there are, which of them to try in which ways, and the rows that come of it."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from desk.proving import days, tickets
from desk.proving.cases import ANSWERED, OVERTAKEN, STOPPED, TWICE, Case, Done, Kill, Row, Seen
from desk.proving.frames import Write
from desk.proving.plays import (
    ASKED,
    CLAIMED,
    DAYS,
    DECIDED,
    DELIVERY,
    PLAYS,
    SAID,
    SUPPORT,
    WORDED,
    Day,
    Play,
)
from desk.proving.relay import AFTER, ANY, BEFORE, EARLY, LATE, Point
from desk.proving.stage import Stage

WORKERS = 2
COMPARED = (
    ("baseline", ("resolver",)),
    ("baseline", ("billing",)),
    ("forgetful bank", ("billing",)),
    ("baseline, forgetful bank", ("billing",)),
)
_PERFORM = {SUPPORT: tickets.perform, DELIVERY: days.perform}
_ALL: dict[str, Sequence[Play | Day]] = {SUPPORT: tuple(PLAYS.values()), DELIVERY: tuple(DAYS.values())}
_TRIES = 3
"""A point is named by what a run without kills writes. Where timing made a run write less, it is run again. So is one
without kills in which something is done twice: a fault does it each time."""
_RECORDED = {SUPPORT: 1, DELIVERY: 2}
"""How often a play is run without a kill: how often a cursor is saved during a day depends on timing."""
_SOON = 8  # the second kill comes within so many writes


class Points:
    """What runs without a kill tell of a desk."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        """Every write of every agent in every play, from where on the play is tried, each on both sides."""
        self.working: list[Case] = []
        """Those of processes that are up."""
        self.asking: list[Case] = []
        """What an agent writes from where a person knows of its question."""
        self.meeting: list[Case] = []
        """The keys that two agents write at once, each agent's write overtaken by the other's."""
        self.undisturbed: dict[str, dict[str, int]] = {}
        """How often things happen in each play, at most."""


async def points(
    stage: Stage, desk: str, plays: Iterable[Play | Day] = (), agents: Sequence[str] = (), way: str = ""
) -> Points:
    """Run each play without a kill, and take down its points. Raises RuntimeError when something is wrong even so."""
    chosen = [play for play in plays or _ALL[desk] for _ in range(_RECORDED[desk])]
    done = await spread(chosen, lambda play: _undisturbed(stage, play, agents, way))
    found = Points()
    for play, runs in itertools.groupby(zip(chosen, done, strict=True), key=lambda pair: pair[0]):
        records = [run for _, run in runs]
        if not way:
            stage.expected[play.name] = records[0].outcome
        found.undisturbed[play.name] = most([record.row.raw for record in records])
        if play.meets:
            found.meeting += meetings(play, [record.seen for record in records])
            continue
        for agent in agents or play.agents:
            seen = [record.seen[agent] for record in records]
            up = False
            tried = {(_named(write), number) for write, number in seen[0].writes[beginning(play, seen[0]) :]}
            for write, number in _both([each.writes for each in seen]):
                if (_named(write), number) not in tried:
                    up = up or write.up
                    continue
                both = [
                    Case(play, (Kill(agent, Point(_named(write), number, side)),), way)
                    for side in (BEFORE, AFTER)
                ]
                found.cases += both
                found.working += both if up else ()
                up = up or write.up
            if agent == play.asks and seen[0].asked and play.since in ("", ASKED):
                found.asking += asking(play, agent, seen[0].writes[: seen[0].asked])
    return found


def beginning(play: Play | Day, seen: Seen) -> int:
    """Where among an agent's writes those begin that are tried."""
    named = [str(write) for write, _ in seen.writes]
    if play.since == ASKED:
        return question(play, named[: seen.asked])
    if play.since == SAID:
        return seen.asked
    if play.since == DECIDED:
        decided = next(n for n, name in enumerate(named) if name.startswith("cas decisions "))
        return question(play, named[:decided])
    last = {CLAIMED: "cas claims ", WORDED: ("cas texts ", "cas results day-1:messages")}.get(play.since)
    return max(n for n, name in enumerate(named) if name.startswith(last)) if last else 0


def question(play: Play | Day, named: Sequence[str]) -> int:
    """Which of these writes is the `asked` event, by which a person knows. named: those before the answer."""
    if play.desk == SUPPORT:
        claim = max(n for n, name in enumerate(named) if name.startswith("cas claims "))
        return named.index("send desk.events", named.index("send agent.sessions", claim))
    return max(n for n, name in enumerate(named) if name == "send fleet.events")


def asking(play: Play | Day, agent: str, writes: Sequence[tuple[Write, int]]) -> list[Case]:
    """From the `asked` event on to the end of the message it was asked in. writes: those before the answer."""
    asked = question(play, [str(write) for write, _ in writes])
    acknowledged = [
        n for n, (write, _) in enumerate(writes) if n > asked and write.operation == "acknowledge"
    ]
    end = acknowledged[0] + 1 if acknowledged else len(writes)
    return [
        Case(play, (Kill(agent, Point(_named(write), number, side)),), ANSWERED)
        for n, (write, number) in enumerate(writes[asked:end])
        for side in (BEFORE, AFTER)
        if n or side == AFTER
    ]


def meetings(play: Play | Day, runs: Sequence[Mapping[str, Seen]]) -> list[Case]:
    """Each key that both agents of a play write in each of its runs, at the first write of each; both ways round."""

    def keys(agent: str) -> dict[str, Write]:
        written: list[dict[str, Write]] = [
            {write.what: _named(write) for write, _ in run[agent].writes if write.operation in ("set", "cas")}
            for run in runs
        ]
        return {what: write for what, write in written[0].items() if all(what in run for run in written)}

    return [
        Case(
            play,
            (Kill(early, Point(keys(early)[what], 1, EARLY)), Kill(late, Point(write, 1, LATE))),
            OVERTAKEN,
        )
        for early, late in itertools.permutations(play.meets)
        for what, write in keys(late).items()
        if what in keys(early) and play.meets_at in (what, "")
    ]


def most(runs: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """How often each thing happened in the run where it happened most often."""
    return {what: max(run[what] for run in runs) for what in runs[0]}


def _both(runs: Sequence[Sequence[tuple[Write, int]]]) -> list[tuple[Write, int]]:
    """The writes that every one of these runs made, in the order of the first."""
    counts = [Counter(write for write, _ in run) for run in runs]
    return [(write, number) for write, number in runs[0] if all(count[write] >= number for count in counts)]


def _named(write: Write) -> Write:
    return Write(write.operation, write.what)


async def _undisturbed(stage: Stage, play: Play | Day, agents: Sequence[str], way: str) -> Done:
    kills = tuple(Kill(agent, Point(ANY, 10**9, BEFORE)) for agent in agents)
    for _ in range(_TRIES):  # a slow machine may make a message come twice: once
        done = await _PERFORM[play.desk](stage, Case(play, kills if way else (), way))
        if done.row.violations:
            raise RuntimeError(f"{play.name} without a kill: {'; '.join(done.row.violations)}")
        if not done.repeated:
            return done
        print(f"{play.name} without a kill: {'; '.join(done.repeated)}", flush=True)
    raise RuntimeError(f"{play.name} without a kill, each of {_TRIES} times: {'; '.join(done.repeated)}")


def twice(cases: Sequence[Case], size: int, seed: int) -> list[Case]:
    """Two kills in one run: a point, and a second soon after it, of the same process or of another."""
    draw = random.Random(f"twice:{seed}")
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.play.name, case.kills[0].agent), []).append(case)
    early = [
        case for group in groups.values() for case in group[: len(group) // 2]
    ]  # so that there is a soon
    chosen = []
    for first in draw.sample(early, min(size, len(early))):
        [kill] = first.kills
        others = [c for c in cases if c.play == first.play and c.kills[0].agent != kill.agent]
        if not others or draw.random() < 0.5:
            again = Kill(kill.agent, Point(ANY, draw.randint(1, _SOON), draw.choice((BEFORE, AFTER))))
        else:
            again = draw.choice(others).kills[0]
        chosen.append(Case(first.play, (kill, again), TWICE))
    return chosen


def stopped(cases: Sequence[Case], way: str, size: int, seed: int) -> list[Case]:
    """Processes that stop at a write of theirs, drawn evenly over agents. Every other one of those that are to go on
    keeps its connections. cases: of processes that are up.
    """

    def place(kill: Kill, turn: int) -> Kill:
        return replace(kill, point=replace(kill.point, kept=way == STOPPED and turn % 2 == 0))

    groups: dict[str, list[Case]] = {}
    for case in cases:
        if case.kills[0].point.write.operation in ("send", "cas", "set"):
            groups.setdefault(case.kills[0].agent, []).append(case)
    drawn = [
        [
            Case(case.play, (place(case.kills[0], turn + first),), way)
            for turn, case in enumerate(sample(group, size, seed))
        ]
        for first, group in enumerate(groups.values())
    ]
    turns = itertools.zip_longest(*drawn)  # one of each agent, then the next of each
    return [case for turn in turns for case in turn if case][:size]


async def comparisons(stage: Stage, size: int, seed: int) -> list[Case]:
    """Kills at `size` points each where something is missing: the pattern, the bank's keys, or both."""
    chosen = []
    for way, agents in COMPARED:
        found = await points(stage, SUPPORT, [PLAYS["duplicate"]], agents, way)
        work = [case for case in found.cases if case.kills[0].point.write.operation in ("send", "cas", "set")]
        chosen += sample(work, size, seed)
    return chosen


def sample(cases: Sequence[Case], size: int, seed: int) -> list[Case]:
    """`size` of them, drawn evenly over play and agent; the same seed draws the same."""
    draw = random.Random(seed)
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.play.name, case.kills[0].agent), []).append(case)
    for group in groups.values():
        draw.shuffle(group)
    taken: list[Case] = []
    while len(taken) < min(size, len(cases)):
        for group in groups.values():
            if group and len(taken) < size:
                taken.append(group.pop())
    return taken


async def perform(stage: Stage, case: Case) -> Row:
    """One row: the run in which every kill fired, or the last of some in which one did not."""
    for _ in range(_TRIES):
        row = (await _PERFORM[case.play.desk](stage, case)).row
        if row.reached or row.violations:
            break
    return row


async def spread(
    work: Sequence[Any], do: Callable[[Any], Awaitable[Any]], workers: int = WORKERS
) -> list[Any]:
    """Do all of it, so many at a time; the results in the order of the work."""
    results: dict[int, Any] = {}
    queue = iter(enumerate(work))

    async def worker() -> None:
        for number, piece in queue:
            results[number] = await do(piece)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())
    return [results[number] for number in range(len(work))]
