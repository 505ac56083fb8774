"""Which points there are, which of them to try, and the rows that come of it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from desk.control.support import AGENTS
from desk.proving.frames import Write
from desk.proving.plays import PLAYS, Play
from desk.proving.relay import AFTER, BEFORE, Point
from desk.proving.stage import Row, Stage

WORKERS = 2
COMPARED = (
    ("baseline", ("resolver",)),
    ("baseline", ("billing",)),
    ("forgetful bank", ("billing",)),
    ("baseline, forgetful bank", ("billing",)),
)
_TRIES = 3
"""A point is named by what a run without kills writes. Where timing made a run write less, it is run again."""


@dataclass(frozen=True)
class Case:
    """One run to do."""

    play: Play
    agent: str
    point: Point
    variant: str = ""

    @property
    def name(self) -> str:
        """The same in every run: what a row is known by."""
        return f"{self.play.name} / {self.agent} / {self.point}" + (
            f" / {self.variant}" if self.variant else ""
        )


async def points(
    stage: Stage, plays: Iterable[Play] = PLAYS.values(), agents: Sequence[str] = AGENTS, variant: str = ""
) -> tuple[list[Case], dict[str, dict[str, int]]]:
    """Every write of every agent in every play, each on both sides, found by running each play once an agent;
    and what happened how often in each play without a kill.
    """

    async def record(pair: tuple[Play, str]) -> Row:
        row = await stage.perform(*pair, variant=variant)
        if row.violations:
            raise RuntimeError(f"{row.play} without a kill: {'; '.join(row.violations)}")
        return row

    pairs = [(play, agent) for play in plays for agent in agents]
    rows = await spread(pairs, record)
    cases = [
        Case(play, agent, Point(Write(write.operation, write.what), occurrence, side), variant)
        for (play, agent), row in zip(pairs, rows, strict=True)
        for write, occurrence in row.seen
        for side in (BEFORE, AFTER)
    ]
    return cases, {row.play: row.raw for row in rows}


async def comparisons(stage: Stage, size: int, seed: int) -> list[Case]:
    """Kills at `size` points each where something is missing: the pattern, the bank's keys, or both."""
    chosen = []
    for variant, agents in COMPARED:
        cases, _ = await points(stage, [PLAYS["duplicate"]], agents, variant)
        work = [case for case in cases if case.point.write.operation in ("send", "cas", "set")]
        chosen += sample(work, size, seed)
    return chosen


def sample(cases: Sequence[Case], size: int, seed: int) -> list[Case]:
    """`size` of them, drawn evenly over play and agent; the same seed draws the same."""
    draw = random.Random(seed)
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.play.name, case.agent), []).append(case)
    for group in groups.values():
        draw.shuffle(group)
    taken: list[Case] = []
    while len(taken) < min(size, len(cases)):
        for group in groups.values():
            if group and len(taken) < size:
                taken.append(group.pop())
    return taken


async def perform(stage: Stage, case: Case) -> Row:
    """One row: the run in which the kill fired, or the last of some in which it did not."""
    for _ in range(_TRIES):
        row = await stage.perform(case.play, case.agent, case.point, case.variant)
        if row.killed or row.violations:
            break
    return row


async def spread(work: Sequence[Any], do: Callable[[Any], Awaitable[Any]]) -> list[Any]:
    """Do all of it, WORKERS at a time; the results in the order of the work."""
    results: dict[int, Any] = {}
    queue = iter(enumerate(work))

    async def worker() -> None:
        for number, piece in queue:
            results[number] = await do(piece)

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(worker())
    return [results[number] for number in range(len(work))]
