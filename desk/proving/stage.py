"""One stack for many runs, with the judges of its runs beside it, in a folder that is thrown away."""

import asyncio
import contextlib
import functools
import itertools
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import laser_sdk as ls

from desk.control.errors import DeskError
from desk.control.events import EventLog
from desk.proving import day_invariants, invariants
from desk.proving.cases import HUNG, OVERTAKEN, STOPPED, VARIANTS, Case, Done, Seen, row
from desk.proving.meeting import Meeting
from desk.proving.operations import unlisted
from desk.proving.plays import DELIVERY, SUPPORT
from desk.proving.relay import Point, Relay
from desk.runtime import records
from desk.runtime.spec import Spec

JUDGES = {SUPPORT: invariants.__file__, DELIVERY: day_invariants.__file__}
SILENT = 1.0  # seconds after which a stopped process is replaced, and takes itself for replaced
FIRED = 10.0  # seconds a point may come after everything else is done
PROGRAM = "claude"
"""A writer of the desks: a program of this name."""
_NEVER_THE_SAME = """#!/bin/sh
read words </proc/sys/kernel/random/uuid
echo "$words"
"""
"""In its place here: as a model it writes something else each time."""


class Stage:
    """A stack and a judge a desk, processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connection = ""
        self.numbers = itertools.count(1)
        self.expected: dict[str, Any] = {}
        """What comes of each day without a kill."""
        self._stack: asyncio.subprocess.Process | None = None
        self._judges: dict[str, asyncio.subprocess.Process] = {}
        self._judging = asyncio.Lock()
        self._path = os.environ["PATH"]

    async def __aenter__(self) -> "Stage":
        self._stack = await python("-m", "desk.stack", "--data", str(self.folder / "stack"))
        _, out = pipes(self._stack)
        program = self.folder / "bin" / PROGRAM
        program.parent.mkdir()
        program.write_text(_NEVER_THE_SAME, encoding="utf-8")
        program.chmod(0o755)
        os.environ["PATH"] = f"{program.parent}{os.pathsep}{self._path}"
        self.connection = json.loads(await out.readline())["connection_string"]
        return self

    async def __aexit__(self, *_: Any) -> None:
        os.environ["PATH"] = self._path
        for process in (*self._judges.values(), self._stack):
            if process and process.returncode is None:
                process.terminate()
                await process.wait()

    async def judge(self, desk: str, run: Mapping[str, Any]) -> dict[str, Any]:
        """A run's verdict. Raises DeskError when the judge itself fails."""
        async with self._judging:
            if desk not in self._judges:
                self._judges[desk] = await python(JUDGES[desk], self.connection)
            into, out = pipes(self._judges[desk])
            into.write(json.dumps(run).encode() + b"\n")
            line = await out.readline()
        if not line:
            raise DeskError("The judge has ended: its error is above.")
        return json.loads(line)

    def relays(self, case: Case, **options: Any) -> dict[str, Relay]:
        """A relay for each agent of a case."""
        if case.way in (STOPPED, HUNG):
            options["hit"] = signal.SIGSTOP
        if case.way == OVERTAKEN:
            options["meeting"] = Meeting()
        return {agent: self.relay(case.points(agent), **options) for agent in case.agents}

    def relay(self, points: Sequence[Point] = (), **options: Any) -> Relay:
        """A relay to this stack."""
        host, _, port = self.connection.rpartition("@")[2].partition(":")
        return Relay(host, int(port), points, **options)

    async def switches(self, case: Case, relays: Mapping[str, Relay]) -> dict[str, dict[str, str]]:
        """What each agent behind a relay is told."""
        login = self.connection.rpartition("@")[0]
        more = VARIANTS.get(case.way, {})
        if case.way == STOPPED:
            more = {"hang_after": str(SILENT), "unwatched": "1"}  # the watchdog would end it
        if case.way == HUNG:
            more = {"hang_after": str(2 * SILENT)}
        return {
            agent: {"connection": f"{login}@127.0.0.1:{await relay.open()}", **more}
            for agent, relay in relays.items()
        }


def replacement(desk: Any, agent: str, module: str, events_topic: str, **switches: str) -> Spec:
    """What the process that takes an agent's place is told: as the agent, but straight to the stack."""
    return Spec(
        name=agent,
        module=module,
        stream=desk.stream,
        events_topic=events_topic,
        folder=desk.folder,
        settings=desk.settings,
        switches=switches,
        connection=desk.supervisor.connection,
    )


async def python(*arguments: str, stderr: IO[bytes] | None = None) -> asyncio.subprocess.Process:
    """A Python program with pipes."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=pipe, stdout=pipe, stderr=stderr
    )


def pipes(process: asyncio.subprocess.Process) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
    """What goes into a program that `python` started, and what comes out of it."""
    assert process.stdin and process.stdout
    return process.stdin, process.stdout


def cancelled_by_sigterm() -> None:
    """From here on SIGTERM cancels the task that calls this, so that it ends what it started."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def introduce(relays: Mapping[str, Relay], desk: Any) -> None:
    """Tell the relays what the supervisor knows of their agents."""

    def pid(agent: str) -> int:
        with contextlib.suppress(DeskError):  # the desk has stopped
            return desk.processes[agent].pid
        return 0

    for agent, relay in relays.items():
        relay.likely = functools.partial(pid, agent)


async def on_log(laser: ls.Laser, topic: str, **fields: object) -> bool:
    """Whether an event with these fields is on the log now."""
    rows: Any = laser.topic(topic).replay()
    while some := await rows.poll():
        if any(event and fields.items() <= event.items() for event in map(records.event, some)):
            return True
    return False


async def all_fired(relays: Mapping[str, Relay]) -> None:
    """Wait a little for the points that come last of all."""
    waiting = [asyncio.create_task(relay.fired.wait()) for relay in relays.values()]
    _, late = await asyncio.wait(waiting, timeout=FIRED)
    for task in late:
        task.cancel()


async def ended(log: EventLog, case: Case, relays: Mapping[str, Relay]) -> None:
    """See that the watchdog ended who was hung. Raises DeskError when it did not."""
    if case.way != HUNG:
        return
    for agent, relay in relays.items():
        for pid in relay.hits:
            await log.wait(
                lambda event, pid=pid: (
                    (event["kind"], event.get("by"), event.get("pid")) == ("killed", "watchdog", pid)
                ),
                FIRED,
                lambda agent=agent: f"{agent} hung, and no watchdog ended it.",
            )


def done(
    case: Case,
    relays: Mapping[str, Relay],
    asked: Mapping[str, int],
    trouble: Sequence[str],
    verdict: Mapping[str, Any],
) -> Done:
    """What came of a case. asked: how many writes of an agent came before a person answered."""
    hit = sum(len(relay.hits) for relay in relays.values())
    frames = tuple(f"{agent} {frame}" for agent, relay in relays.items() for frame in relay.frames)
    seen = {agent: Seen(tuple(relay.seen), asked.get(agent, 0)) for agent, relay in relays.items()}
    strange = [
        f"{agent} asked for what the protocol does not list: {', '.join(codes)}"
        for agent, relay in relays.items()
        if (codes := unlisted(relay.codes))
    ]
    violations = (*trouble, *strange, *verdict["violations"])
    made = row(case, hit, violations, verdict["raw"], frames)
    return Done(made, seen, verdict.get("outcome", {}), tuple(verdict.get("repeated", ())))
