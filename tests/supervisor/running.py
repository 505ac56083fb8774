"""A small desk for tests: an embedded stack, probe agents, and a way to wait for their events."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import laser_sdk as ls
import psutil

from desk.runtime.connect import connect
from desk.runtime.spec import Spec
from desk.supervisor.client import Supervisor

PATIENCE = 60.0  # seconds, with a busy machine
STREAM, EVENTS, LANE = "probes", "desk.events", "agent.sessions"


def probe(name: str, folder: Path, module: str = "echo", **switches: str) -> Spec:
    """The spec of one probe; `module` is a file of tests/supervisor/probes."""
    return Spec(
        name=name,
        module=f"tests.supervisor.probes.{module}",
        stream=STREAM,
        events_topic=EVENTS,
        folder=folder,
        switches=switches,
    )


class Desk:
    """A supervisor with an embedded stack, and a client that reads and writes beside it."""

    def __init__(self, supervisor: Supervisor, laser: ls.Laser, folder: Path) -> None:
        self.supervisor, self.laser, self.folder = supervisor, laser, folder
        self._cursor = laser.topic(EVENTS).replay()
        self.seen: list[dict[str, Any]] = []

    @classmethod
    async def start(cls, folder: Path, *specs: Spec) -> "Desk":
        supervisor = await Supervisor.start(folder=folder, specs=specs)
        try:
            laser = await connect(supervisor.connection, STREAM)
            await laser.stream(STREAM).ensure()
            await laser.sessions().bootstrap(2, ls.TopicRetention.expire_after(7 * 86_400_000))
            await laser.topic(EVENTS).ensure(1)
            await supervisor.launch()
        except BaseException:
            await supervisor.stop()
            raise
        return cls(supervisor, laser, folder)

    async def close(self) -> None:
        await self.supervisor.stop()
        await self.laser.close()

    def pid(self, name: str) -> int:
        return self.supervisor.states[name].pid

    async def send(self, target: str, ticket: str, **body: Any) -> None:
        """One `work` command, in a conversation of its own."""
        await self.laser.agdx(LANE, "test", ls.derive_conversation_id(ticket)).command(
            ls.derive_conversation_id(f"{ticket}:work"),
            json.dumps({"ticket": ticket, **body}).encode(),
            operation="work",
            target=target,
            idempotency_key=f"{ticket}:work",
            content_type="json",
        )

    async def event(self, kind: str, *, count: int = 1, **fields: Any) -> dict[str, Any]:
        """The `count`th event of that kind with these fields; waits until it is on the log."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.seen += [message.json() for message in await self._cursor.poll()]
                found = [e for e in self.seen if e["kind"] == kind and fields.items() <= e.items()]
                if len(found) >= count:
                    return found[count - 1]
                await asyncio.sleep(0.01)

    async def state(self, name: str, state: str) -> None:
        """Wait until that process is in that state."""
        changed = asyncio.Event()
        remove = self.supervisor.listen(lambda _: changed.set())
        async with asyncio.timeout(PATIENCE):
            while self.supervisor.states[name].state != state:
                changed.clear()
                await changed.wait()
        remove()

    async def dead_letters(self) -> int:
        return len(await self.laser.topic("agent.dlq").replay().poll())


def below(pid: int) -> list[psutil.Process]:
    """Every living process below that one."""
    return psutil.Process(pid).children(recursive=True)


def survivors(processes: list[psutil.Process], within: float = PATIENCE) -> list[psutil.Process]:
    """Those still alive after so many seconds; returns as soon as there are none. A zombie is dead."""
    end = time.monotonic() + within
    while (alive := [process for process in processes if _lives(process)]) and time.monotonic() < end:
        time.sleep(0.01)
    return alive


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
