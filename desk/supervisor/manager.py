"""The processes of one desk: start, watch, kill, restart, back off. One event loop, no timers but the back-off."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from desk.runtime.pulse import HANG
from desk.runtime.spec import Spec
from desk.supervisor import folder as folders
from desk.supervisor.backoff import Backoff
from desk.supervisor.children import ForkServer, Stack
from desk.supervisor.journal import Journal
from desk.supervisor.monkey import plan
from desk.supervisor.refused import Refused

STACK = "stack"
_WRITE_FIRST = 1.0  # seconds a `killed` event may delay its SIGKILL
_COME_UP = 30.0  # seconds for a process to come up
_BETWEEN_LIVES = 20.0  # seconds a kill or restart waits for a process that is just being replaced
_LOOK = 0.5  # seconds between two looks for hung processes
_GO = 1.0  # seconds for SIGTERM to end a process: at once, unless it is stopped
_GONE = 20.0  # seconds until the end of a process that got SIGKILL is reported: at once, unless the machine is busy


@dataclass
class Member:
    """One process by name, over all its lives."""

    name: str
    spec: Spec | None = None  # None: the embedded stack
    pid: int = 0
    state: str = "stopped"
    deaths: int = 0
    error: str = ""
    backoff: Backoff = field(default_factory=Backoff)
    born: float = 0.0
    log_start: int = 0
    beat: float = 0.0
    """When it last gave a sign of life; 0 before the first. Only who has given one can be hung."""
    forking: bool = False
    """A fork was asked for and its pid is not known yet."""
    killing: int = 0
    """The pid whose death was asked for, so that it is not reported as `died`."""
    stopping: bool = False
    retry: asyncio.TimerHandle | None = None
    restarting: asyncio.Lock = field(default_factory=asyncio.Lock)


class Manager:
    """Raises Refused, one sentence, for what cannot be done."""

    def __init__(self, folder: Path, changed: Callable[[dict[str, Any]], None]) -> None:
        self.connection = ""
        self._folder = folder
        self._changed = changed
        self._members: dict[str, Member] = {}
        self._turn = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._lock = folders.own(folder)
        self._forks = ForkServer(folder, self._lock, self._reported, self._forks_lost)
        self._forks_backoff, self._forks_born = Backoff(), 0.0
        self._stack: Stack | None = None
        self._journal: Journal | None = None
        self._monkey: asyncio.Task[None] | None = None
        self._monkey_off = asyncio.Event()

    async def start(self, connection: str) -> None:
        """Start the fork server and, without a connection, the embedded stack."""
        self.connection = connection
        if not connection:
            self._stack = Stack(self._folder, self._lock, self._stack_died)
            self._members[STACK] = Member(STACK)
        self._forks_born = time.monotonic()
        await asyncio.gather(self._forks.start(), self._start_stack() if self._stack else asyncio.sleep(0))

    async def launch(self, specs: Sequence[Spec]) -> None:
        """Start these and wait until all are up."""
        for spec in specs:
            if spec.name in self._members:
                raise Refused(f"There is already a process named {spec.name}: choose another name.")
        if self._journal is None and specs:
            self._journal = Journal(self.connection, specs[0].stream, specs[0].events_topic)
            self._spawn(self._watch())
        for spec in specs:
            member = Member(spec.name, replace(spec, connection=self.connection))
            self._members[spec.name] = member
            self._start(member)
        await asyncio.gather(*(self._come_up(self._members[spec.name]) for spec in specs))

    async def kill(self, name: str, by: str) -> int:
        """SIGKILL that process and return its pid once it is gone.

        The event that says who did it goes first, if the stack takes it in time.
        """
        member = await self._alive(name)
        pid = member.pid
        if member.killing != pid:  # else somebody's kill of the same process is on its way
            member.killing = pid
            if self._journal:
                text = f"{name} pid {pid} (SIGKILL, by {by})"
                await self._journal.write("killed", _WRITE_FIRST, agent=name, pid=pid, by=by, text=text)
            if member.pid == pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until(lambda: member.pid != pid), _GONE)
        return pid

    async def restart(self, name: str, module: str | None, switches: dict[str, str | None]) -> None:
        """End that process and start it with these switches changed; an empty switch is taken away."""
        member = self._member(name)
        if member.spec is None and (module or switches):
            raise Refused("The stack has no switches: restart it without any.")
        async with member.restarting:  # one after the other: two at once would start it twice
            await self._forked(member, _BETWEEN_LIVES)
            await self._stop(member)
            if member.spec:
                merged = {**member.spec.switches, **switches}
                member.spec = replace(
                    member.spec,
                    module=module or member.spec.module,
                    switches={key: value for key, value in merged.items() if value},
                )
            member.backoff, member.error = Backoff(), ""
            self._start(member)
            await self._come_up(member)

    async def chaos(self, on: bool, every: float, seed: int, names: Sequence[str] | None) -> None:
        """Let the monkey kill one of `names` (all but the stack, unless told) every so many seconds, or stop it."""
        await self._end_chaos()
        if not on:
            return
        if not every > 0:
            raise Refused(f"The monkey cannot kill every {every:g} s: choose more than 0.")
        chosen = names or [name for name in self._members if name != STACK]
        for name in chosen:
            self._member(name)
        if not chosen:
            raise Refused("There is nothing for the monkey to kill: launch agents first.")
        self._monkey_off.clear()
        self._monkey = asyncio.create_task(self._kill_at_random(seed, chosen, every))

    async def stop(self) -> None:
        """End everything: agents first, then the stack, so that no agent sees it go."""
        await self._end_chaos()
        for task in self._tasks:
            task.cancel()
        agents = [member for member in self._members.values() if member.spec]
        await asyncio.gather(*(self._stop(member) for member in agents))
        if self._journal:
            await self._journal.close(0.5)
        await self._forks.stop()
        if self._stack:
            self._members[STACK].stopping = True
            await self._stack.stop()
            self._set(self._members[STACK], pid=0, state="stopped")

    # -- lives and deaths

    def _start(self, member: Member) -> None:
        member.retry = None
        member.stopping = False
        member.born, member.beat = time.monotonic(), 0.0
        log = folders.log_file(self._folder, member.name)
        member.log_start = log.stat().st_size if log.exists() else 0
        # A failing process is shown as failing until it is up.
        self._set(member, state="failing" if member.backoff.failing else "starting")
        if member.spec:
            member.forking = True
            self._forks.fork(member.spec, log)
        else:
            self._spawn(self._start_stack())

    async def _start_stack(self) -> None:
        member, stack = self._members[STACK], self._embedded
        member.born = time.monotonic()
        self._set(member, state="failing" if member.backoff.failing else "starting")
        try:
            await stack.start()
        except Refused as refused:
            if not self.connection:
                raise  # it never was there: whoever starts the desk is told
            self._set(member, error=str(refused))
            self._ended(member, 0, None)
            return
        self.connection = stack.connection
        self._set(member, pid=stack.pid, state="up", error="")

    def _reported(self, report: dict[str, Any]) -> None:
        """A birth, a coming up or a death, as the fork server or the child tells it."""
        pid = report["pid"]
        if name := report.get("beat"):
            if self._members[name].pid == pid:
                self._members[name].beat = time.monotonic()
        elif name := report.get("up"):
            member = self._members[name]
            member.forking = False
            self._set(member, pid=pid, state="up", error="")
        elif name := report.get("forked"):
            member = self._members[name]
            member.forking = False
            if member.pid != pid:  # else the child's own report overtook this one
                self._set(member, pid=pid)
        elif (name := report.get("exited")) and self._members[name].pid == pid:
            self._ended(self._members[name], pid, report["code"])

    def _stack_died(self, pid: int, code: int) -> None:
        self._ended(self._members[STACK], pid, code)

    def _ended(self, member: Member, pid: int, code: int | None) -> None:
        """A life is over: decide about the next one. `code` is negative for a signal, None if unknown."""
        asked, member.killing = bool(pid) and member.killing == pid, 0
        if member.stopping or (code == 0 and member.spec):  # a main that returned has done its work
            self._set(member, pid=0, state="stopped")
            return
        delay = 0.0
        if not asked:
            why = folders.last_line(folders.log_file(self._folder, member.name), member.log_start)
            if self._journal and pid:
                text = f"{member.name} died (pid {pid}, {_how(code)})" + (f": {why}" if why else "")
                self._journal.note("died", agent=member.name, pid=pid, text=text)
            delay = member.backoff.died(member.born, time.monotonic(), member.state == "up")
            member.error = why or member.error or _how(code)
        self._set(member, pid=0, deaths=member.deaths + 1, state="failing" if delay else "down")
        if delay:
            member.retry = asyncio.get_running_loop().call_later(delay, self._start, member)
        else:
            self._start(member)

    def _forks_lost(self) -> None:
        """The fork server died and took its children with it: replace it, then them."""
        for member in self._members.values():
            if member.spec and (member.pid or member.forking):
                member.forking = False
                self._ended(member, member.pid, None)
        self._spawn(self._restart_forks())

    async def _restart_forks(self) -> None:
        while True:
            await asyncio.sleep(self._forks_backoff.died(self._forks_born, time.monotonic()))
            self._forks_born = time.monotonic()
            with contextlib.suppress(Refused):
                await self._forks.start()
                return

    async def _stop(self, member: Member) -> None:
        """End one process because it is wanted: no event, no restart."""
        member.stopping = True
        if member.retry:
            member.retry.cancel()
            member.retry = None
        await self._forked(member, _GO)
        if member.spec is None:
            await self._embedded.stop()
            self._set(member, pid=0, state="stopped")
            return
        for number, within in ((signal.SIGTERM, _GO), (signal.SIGKILL, _GONE)):
            if member.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._until(lambda: not member.pid), within)
                break
        self._set(member, state="stopped")

    async def _forked(self, member: Member, within: float) -> None:
        """Wait until the pid of a process that is being forked is known: without it nobody can end it."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until(lambda: not member.forking), within)

    async def _kill_at_random(self, seed: int, names: Sequence[str], every: float) -> None:
        for wait, name in plan(seed, names, every):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._monkey_off.wait(), wait)
                return
            if self._members[name].pid:
                with contextlib.suppress(Refused):
                    await self.kill(name, "chaos")

    async def _end_chaos(self) -> None:
        """Returns when the last kill is done: one that has been announced on the log must happen."""
        self._monkey_off.set()
        if self._monkey:
            await self._monkey
            self._monkey = None

    async def _watch(self) -> None:
        """Kill whoever gives no sign of life any more: a handler that blocks, which neither log nor kernel can see."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK)
            now = time.monotonic()
            asleep, last = now - last - _LOOK, now
            for member in self._members.values():
                if not (member.spec and member.pid and member.beat) or member.spec.switches.get("unwatched"):
                    continue
                member.beat += asleep  # while this process was held up itself, it could not hear any
                if now - member.beat > float(member.spec.switches.get("hang_after") or HANG):
                    member.beat = 0.0
                    self._spawn(self._end_hung(member.name))

    async def _end_hung(self, name: str) -> None:
        with contextlib.suppress(Refused):
            await self.kill(name, "watchdog")

    # -- helpers

    @property
    def _embedded(self) -> Stack:
        """The stack this desk has of its own; only then is there a member without a spec."""
        assert self._stack is not None
        return self._stack

    def _member(self, name: str) -> Member:
        if name not in self._members:
            known = ", ".join(self._members) or "none yet"
            raise Refused(f"There is no process named {name!r}: there is {known}.")
        return self._members[name]

    async def _alive(self, name: str) -> Member:
        """That member once it has a process; between two lives that takes milliseconds."""
        member = self._member(name)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                self._until(lambda: member.pid or member.state in ("failing", "stopped")), _BETWEEN_LIVES
            )
        if not member.pid:
            raise Refused(f"{name} has no process to kill: it is {member.state}.")
        return member

    async def _come_up(self, member: Member) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                self._until(lambda: member.state in ("up", "failing", "stopped")), _COME_UP
            )
        log = folders.log_file(self._folder, member.name)
        if member.state == "failing":
            raise Refused(f"{member.name} does not stay up: {member.error} (see {log}).")
        if member.state not in ("up", "stopped"):
            raise Refused(f"{member.name} did not come up within {_COME_UP:g} s (see {log}).")

    def _set(self, member: Member, **changes: Any) -> None:
        for key, value in changes.items():
            setattr(member, key, value)
        self._changed(
            {
                "name": member.name,
                "pid": member.pid,
                "state": member.state,
                "deaths": member.deaths,
                "error": member.error if member.state == "failing" else "",
            }
        )
        self._turn.set()
        self._turn = asyncio.Event()

    async def _until(self, holds: Callable[[], Any]) -> None:
        while not holds():
            await self._turn.wait()

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _how(code: int | None) -> str:
    if code is None:
        return "with the fork server"
    return signal.Signals(-code).name if code < 0 else f"exit {code}"
