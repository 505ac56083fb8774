"""One stack for many runs, and one run: a desk on a stream of its own, one agent behind a relay, one ticket."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desk.control import support as desks
from desk.control.errors import DeskError
from desk.proving import invariants
from desk.proving.frames import Write
from desk.proving.plays import Play
from desk.proving.relay import Point, Relay

_LONG = 25.0  # seconds a ticket may take under a kill before its run is a violation


VARIANTS: dict[str, dict[str, str]] = {
    "": {},
    "baseline": {"baseline": "1"},
    "forgetful bank": {"bank": "forgetful"},
    "baseline, forgetful bank": {"baseline": "1", "bank": "forgetful"},
}
"""What the agent behind the relay is told besides: the shipped one nothing."""


@dataclass(frozen=True)
class Row:
    """One run. variant: "" for the desk as shipped, else a name in VARIANTS; killed: whether the agent died at the point; seen: every write of the agent up to the end, in order;
    violations: sentences; raw: how often each thing happened, repeats counted.
    """

    play: str
    agent: str
    point: Point | None
    variant: str
    killed: bool
    violations: tuple[str, ...]
    raw: dict[str, int] = field(default_factory=dict)
    seen: tuple[tuple[Write, int], ...] = ()


class Stage:
    """A stack and a judge of its runs, both processes of their own, in a folder that is thrown away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connection = ""
        self._number = 0
        self._stack: asyncio.subprocess.Process | None = None
        self._judge: asyncio.subprocess.Process | None = None
        self._judging = asyncio.Lock()

    async def __aenter__(self) -> "Stage":
        self._stack = await _python("-m", "desk.stack", "--data", str(self.folder / "stack"))
        self.connection = json.loads(await self._stack.stdout.readline())["connection_string"]
        self._judge = await _python(invariants.__file__, self.connection)
        return self

    async def __aexit__(self, *_: Any) -> None:
        for process in (self._judge, self._stack):
            if process and process.returncode is None:
                process.terminate()
                await process.wait()

    async def perform(self, play: Play, agent: str, point: Point | None = None, variant: str = "") -> Row:
        """One run: open the ticket, answer, wait until everything is acknowledged, judge."""
        self._number += 1
        support = await desks.start(name=f"run-{self._number}", data=self.folder, connection=self.connection)
        first = support.processes[agent].pid
        host, _, port = self.connection.rpartition("@")[2].partition(":")
        relay = Relay(host, int(port), point, lambda: _kill(support, agent, first))
        trouble: list[str] = []
        try:
            login = self.connection.rpartition("@")[0]
            through = {"relay": f"{login}@127.0.0.1:{await relay.open()}", "real": f"desk.support.{agent}"}
            await support.supervisor.restart(
                agent, module="desk.proving.relayed", **through, **VARIANTS[variant]
            )
            ticket = await support.open_ticket(play.scenario)
            await support.see_through(ticket, play.answer, timeout=_LONG)
            if point:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(relay.fired.wait(), 5)
            await _quiet(support)
        except DeskError as error:
            trouble.append(str(error))
        finally:
            await support.stop()
            await relay.close()
        verdict = await self._verdict(support, play, agent, variant)
        return Row(
            play.name, agent, point, variant, relay.fired.is_set(),
            (*trouble, *verdict["violations"]), verdict["raw"], tuple(relay.seen),
        )  # fmt: skip

    async def _verdict(
        self, support: desks.SupportDesk, play: Play, agent: str, variant: str
    ) -> dict[str, Any]:
        run = {
            "stream": support.stream,
            "bank": str(support.folder / "bank.sqlite"),
            "issues": play.issues,
            "refunds": play.refunds,
            "declined": play.declined,
            "ledger": not ("baseline" in variant and agent == "billing"),
        }
        async with self._judging:
            self._judge.stdin.write(json.dumps(run).encode() + b"\n")
            line = await self._judge.stdout.readline()
        if not line:
            raise DeskError("The judge has ended: its error is above.")
        return json.loads(line)


async def _python(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )


async def _kill(support: desks.SupportDesk, agent: str, before: int) -> int:
    """SIGKILL the agent that came after `before`; its pid."""
    known = asyncio.Event()
    remove = support.supervisor.listen(lambda state: known.set())
    while (pid := support.processes[agent].pid) in (0, before):
        await known.wait()  # its birth is reported on another way than the one its first write took
        known.clear()
    remove()
    os.kill(pid, signal.SIGKILL)
    return pid


async def _quiet(support: desks.SupportDesk) -> None:
    """Wait until every agent has acknowledged everything there is. Raises DeskError when one does not."""
    end = asyncio.get_running_loop().time() + _LONG
    while True:
        behind = [
            name
            for name in desks.AGENTS
            if not (offsets := await support.group(name)) or any(o.stored != o.head for o in offsets)
        ]
        if not behind:
            return
        if asyncio.get_running_loop().time() > end:
            raise DeskError(f"{', '.join(behind)} left something unacknowledged.")
        await asyncio.sleep(0.02)
