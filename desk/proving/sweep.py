"""Which points there are, which of them to try, and the rows that come of it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from desk.control.support import AGENTS
from desk.proving.frames import Write
from desk.proving.plays import PLAYS, Play
from desk.proving.relay import AFTER, BEFORE, Point
from desk.proving.stage import Row, Stage

WORKERS = 2
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


async def points(stage: Stage, plays: Iterable[Play] = tuple(PLAYS.values())) -> list[Case]:
    """Every write of every agent in every play, each on both sides, found by running each play once an agent."""

    async def record(pair: tuple[Play, str]) -> list[Case]:
        play, agent = pair
        row = await stage.perform(play, agent)
        if row.violations:
            raise RuntimeError(f"{play.name} without a kill: {row.violations}")
        return [
            Case(play, agent, Point(Write(write.operation, write.what), occurrence, side))
            for write, occurrence in row.seen
            for side in (BEFORE, AFTER)
        ]

    pairs = [(play, agent) for play in plays for agent in AGENTS]
    found = await spread(pairs, record)
    return [case for cases in found for case in cases]


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


def comparisons(cases: Sequence[Case], size: int, seed: int) -> list[Case]:
    """The same kills, at `size` points each, where something is missing: the pattern, the bank's keys, or both."""
    refund = [case for case in cases if case.play.name == "duplicate"]
    sent = [case for case in refund if case.point.write.operation == "send"]  # a baseline keeps nothing else
    resolver, billing = ([case for case in sent if case.agent == name] for name in ("resolver", "billing"))
    paying = [case for case in refund if case.agent == "billing"]
    groups = {
        "baseline": [*resolver, *billing],
        "forgetful bank": paying,
        "baseline, forgetful bank": billing,
    }
    return [replace(c, variant=v) for v, found in groups.items() for c in sample(found, size, seed)]


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
