"""An exam for any agent of a running support desk: killed at every write of a small job, is each job done once?

The job is given once undisturbed, and its writes are taken down; then once more for each write and side, with a kill
there. A job is judged by the log and the bank's book: closed, every step's result recorded once and the same, paid as
often as undisturbed. How often a step was begun is counted raw: a step whose result no one recorded must be done again.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desk.control.errors import DeskError
from desk.control.support import SupportDesk
from desk.proving.frames import Write
from desk.proving.relay import AFTER, BEFORE, Link, Point, Relay
from desk.support.agent import LANE

_PATIENCE = 10.0  # seconds for a job that is killed once
_ENOUGH = 3  # kills that did harm, after which the rest can tell nothing new
_LOOK = 0.01  # seconds between two looks at an agent's offsets
_CHUNK = 65536
_JOB = re.compile(r"\bjob-\d+\b")
ACKNOWLEDGE = "acknowledge"
_ACKNOWLEDGED = Write(ACKNOWLEDGE, LANE)


@dataclass(frozen=True)
class Outcome:
    """What is durable of one job. results: step -> every result recorded for it; begun: step -> how often it was begun."""

    closed: int
    dead_letters: int
    paid: int
    bank_asked: int
    begun: Mapping[str, int]
    results: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Attempt:
    """One kill. faults: sentences, none when the job was done as if nothing had happened."""

    point: Point
    killed: bool
    faults: tuple[str, ...]
    outcome: Outcome


@dataclass(frozen=True)
class Exam:
    """An agent killed at every write of a job. calm: the job undisturbed; planned: how many kills that makes."""

    agent: str
    calm: Outcome
    planned: int
    attempts: tuple[Attempt, ...]

    @property
    def passed(self) -> bool:
        """Whether every kill came and none left a trace in the result."""
        return len(self.attempts) == self.planned and all(
            attempt.killed and not attempt.faults for attempt in self.attempts
        )

    @property
    def faults(self) -> Counter[str]:
        """What went wrong, and after how many kills."""
        return Counter(fault for attempt in self.attempts for fault in attempt.faults)


class _Armed(Relay):
    """A relay that can be loaded again, and has the agent killed by its supervisor: no crash, so no back-off."""

    def __init__(self, host: str, port: int, kill: Callable[[], Awaitable[int]]) -> None:
        super().__init__(host, port, name=lambda what: _JOB.sub("the job", what))
        self._kill = kill
        self._writes = self._work = 0
        self.acknowledged = 0
        """Acknowledgements of the job that reached the stack."""

    def arm(self, work: int = 0, *points: Point) -> None:
        """Count from here, and kill at these. work: the writes of the job, before which no acknowledgement is its own."""
        self._points, self._work = points, work
        self._writes = self.acknowledged = 0
        self._counts.clear()
        self.seen.clear()
        self.hits.clear()
        self.fired.clear()

    def _covered(self, write: Write) -> range:
        if write.operation != ACKNOWLEDGE:
            self._writes += 1
            return super()._covered(write)
        if self._writes < self._work:
            return range(0)
        self.acknowledged += 1
        return range(self._counts[write] + 1, self._counts[write] + 2)

    def _side(self, frame: bytes) -> str | None:
        side = super()._side(frame)
        if side == BEFORE and self.seen[-1][0].operation == ACKNOWLEDGE:
            self.acknowledged -= 1
        return side

    async def _fire(self, link: Link) -> bool:
        self.hits.append(0)  # so that no other frame fires meanwhile
        self.hits[-1] = await self._kill()
        while await link.reader.read(_CHUNK):
            pass
        self.fired.set()
        return False


async def examine(
    desk: SupportDesk, agent: str, operation: str, body: Mapping[str, Any], patience: float = _PATIENCE
) -> Exam:
    """Give `agent` this job again and again, each time killed at another write. patience: seconds a job may take.

    Ends early when a job is not finished in time or three kills have done harm. The agent is restarted at the beginning and at the end.
    Raises DeskError when it does not even do the job undisturbed.
    """
    login, _, where = desk.supervisor.connection.rpartition("@")
    host, _, port = where.partition(":")
    relay = _Armed(host, int(port), lambda: desk.kill(agent, by="exam"))

    async def attempt(work: int = 0, *points: Point) -> tuple[Outcome, str]:
        relay.arm(work, *points)
        books = len(desk.bank.payments()), len(desk.bank.asked())
        job = await desk.give(agent, operation, body)
        try:
            await desk.until(job, "closed", "dead_letter", timeout=patience)
            if points:
                await asyncio.wait_for(relay.fired.wait(), patience)
            await _acknowledged(desk, agent, relay, patience)
        except (DeskError, TimeoutError):
            return await outcome(desk, job, *books), "not finished in time"
        return await outcome(desk, job, *books), ""

    try:
        await desk.restart(agent, connection=f"{login}@127.0.0.1:{await relay.open()}")
        await attempt()  # after its first job it has joined its group
        calm, trouble = await attempt()
        if trouble or not calm.closed:
            raise DeskError(
                f"{agent} does not finish the job undisturbed: its handler ends with a closed event."
            )
        work = [(write, number) for write, number in relay.seen if write.operation != ACKNOWLEDGE]
        chosen, attempts = points(work), []
        for point in chosen:
            found, trouble = await attempt(len(work), point)
            faults = (trouble,) if trouble else tuple(differences(calm, found))
            attempts.append(Attempt(point, relay.fired.is_set(), faults, found))
            if trouble or sum(bool(attempt.faults) for attempt in attempts) == _ENOUGH:
                break
    finally:
        await relay.close()
        if desk.running:
            await desk.restart(agent, connection="")
    return Exam(agent, calm, len(chosen), tuple(attempts))


def points(work: Sequence[tuple[Write, int]]) -> list[Point]:
    """Both sides of every write of the job, and of the acknowledgement that comes after them."""
    writes = [*((Write(write.operation, write.what), number) for write, number in work), (_ACKNOWLEDGED, 1)]
    return [Point(write, number, side) for write, number in writes for side in (BEFORE, AFTER)]


def differences(calm: Outcome, found: Outcome) -> list[str]:
    """What a kill has changed, in sentences. Pure."""
    faults = []
    if found.dead_letters:
        faults.append("the job was given up")
    if found.closed != calm.closed:
        faults.append(f"closed {found.closed} times")
    for step, results in calm.results.items():
        recorded = found.results.get(step, ())
        if len(recorded) > len(results):
            faults.append(f"{step} was done again although its result was recorded")
        if set(recorded) != set(results):
            faults.append(f"{step} has another result")
    if found.paid != calm.paid:
        faults.append(f"paid {found.paid} times instead of {calm.paid}")
    return faults


async def outcome(desk: SupportDesk, job: str, paid: int, asked: int) -> Outcome:
    """Read one job's outcome from the log and the bank's books, which had so many lines before it.

    The job's own name in a result is left out.
    """
    events = desk.events(job)
    session = desk.laser.sessions().open(desk.lane.session(job))
    steps: dict[Any, str] = {}
    begun: Counter[str] = Counter()
    results: dict[str, tuple[str, ...]] = {}
    for turn in await session.turns_at(await session.checkpoint()):
        envelope = turn.message.envelope
        if turn.display == "tool.call":
            steps[envelope["correlation"]] = envelope["tool"]
            begun[envelope["tool"]] += 1
        elif turn.display == "tool.result" and envelope["kind"] == "response":
            step = steps[envelope["correlation"]]
            results[step] = (*results.get(step, ()), _JOB.sub("the job", turn.text()))
    return Outcome(
        closed=len({event["id"] for event in events if event["kind"] == "closed"}),
        dead_letters=sum(event["kind"] == "dead_letter" for event in events),
        paid=len(desk.bank.payments()) - paid,
        bank_asked=len(desk.bank.asked()) - asked,
        begun=begun,
        results=results,
    )


async def _acknowledged(desk: SupportDesk, agent: str, relay: _Armed, patience: float) -> None:
    """Wait until the job's message is acknowledged: a kill before that has it delivered again. Raises TimeoutError."""
    async with asyncio.timeout(patience):
        while True:
            offsets = await desk.group(agent)
            if relay.acknowledged and all(o.stored == o.head for o in offsets):
                return
            await asyncio.sleep(_LOOK)
