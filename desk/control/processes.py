"""The processes of a support desk, as a person has them: kill, restart, other switches, other code, chaos."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

import laser_sdk as ls

from desk.control import code
from desk.control.errors import DeskError
from desk.control.events import EventLog
from desk.runtime.events import Events
from desk.runtime.spec import Spec
from desk.settings import Settings
from desk.supervisor.client import ProcessState, Supervisor, SupervisorError
from desk.support.agent import EVENTS, LANE

AGENTS = ("triage", "resolver", "billing")
BANKS = ("forgetful", "keyed")
ANSWER = 30.0
"""Seconds to wait for the stack to take something; a stack that was killed is back in two."""


class Processes:
    """A desk gives it its client (`laser`) and its log; the rest is here."""

    laser: ls.Laser
    log: EventLog

    def __init__(self, settings: Settings, folder: Path, stream: str) -> None:
        self.settings, self.folder, self.stream = settings, folder, stream
        self._modules = {name: _shipped(name) for name in AGENTS}
        self._running = True
        self._supervisor: Supervisor | None = None

    @property
    def running(self) -> bool:
        """Whether it has not been stopped."""
        return self._running

    @property
    def shipped(self) -> Sequence[str]:
        """The agents that run as they are shipped."""
        return [name for name in AGENTS if self._modules[name] == _shipped(name)]

    @property
    def processes(self) -> Mapping[str, ProcessState]:
        """Every process by name, as the supervisor sees it."""
        return self.supervisor.states

    async def kill(self, name: str, by: str = "code") -> int:
        """SIGKILL that process; the supervisor starts another. Returns the pid that was killed."""
        return await self._ask(self.supervisor.kill(name, by=by))

    async def restart(self, name: str, **switches: str) -> None:
        """End that process cleanly and start it with these switches changed; an empty one is taken away."""
        await self._ask(self.supervisor.restart(name, **switches))

    async def use_baseline(self, *names: str) -> None:
        """Let these agents run without checkpoint and ledger; all that have a baseline when none is named."""
        for name in names or ("resolver", "billing"):
            if name == "triage":
                raise DeskError("triage has no baseline: it keeps no checkpoint and no ledger.")
            await self.restart(name, baseline="1")

    async def use_shipped(self, *names: str) -> None:
        """Let these agents run as they are shipped, code and switches; all that do not when none is named."""
        changed = [name for name in AGENTS if self._modules[name] != _shipped(name)]
        for name in names or dict.fromkeys(["resolver", "billing", *changed]):
            if name not in AGENTS:
                raise DeskError(f"{name} is not shipped: {', '.join(AGENTS)} are.")
            if name in changed:
                await self.use_module(name, _shipped(name), "the shipped code again", baseline="")
            else:
                await self.restart(name, baseline="")

    async def use_code(self, name: str, text: str) -> str:
        """Run an agent from this text: the whole of a module with a main. A name that is new makes a new agent.

        Returns the module's name. Raises DeskError, one sentence with the line, for a text that cannot be an agent;
        what ran before still runs.
        """
        module = code.write(self.folder, name, text)
        why = await code.refusal(self.folder, module)
        if why:
            runs = f"The {name} that was running still runs." if name in self._modules else ""
            raise DeskError(f"{why} {runs}".rstrip())
        await self.use_module(name, module)
        return module

    async def use_module(self, name: str, module: str, words: str = "new code", **switches: str) -> None:
        """End an agent and start it from another module, switches changed; every open ticket is told. Raises DeskError.

        A module that does not stay up is taken away again.
        """
        before = self._modules.get(name, "")
        await self._tell(name, words)
        try:
            await self._become(name, module, switches)
        except DeskError:
            if before:
                await self._tell(name, "the code before again")
                await self._become(name, before, {})
            raise

    async def _become(self, name: str, module: str, switches: Mapping[str, str]) -> None:
        if name in self.processes:
            await self._ask(self.supervisor.restart(name, module=module, **switches))
        else:
            await self.laser.topic(LANE).ensure_consumer_group(name)
            await self._ask(self.supervisor.launch(self._spec(name, module)))
        if self.processes[name].state == "stopped":
            raise DeskError(f"The main of {name} ended at once: it serves until it is killed.")
        self._modules[name] = module

    async def _tell(self, name: str, words: str) -> None:
        pid = self.processes[name].pid if name in self._modules else None
        await code.tell(Events(self.laser, EVENTS, name), self.log.rows, pid, words)

    async def use_bank(self, kind: str) -> None:
        """ "forgetful": a bank that pays whenever it is asked; "keyed": one that pays once for each key."""
        if kind not in BANKS:
            raise DeskError(f"There is no {kind!r} bank: choose {' or '.join(BANKS)}.")
        await self.restart("billing", bank="forgetful" if kind == "forgetful" else "")

    async def chaos(self, on: bool, *, every: float = 2.0, seed: int | None = None) -> None:
        """Turn the monkey on or off: it kills a random agent every so many seconds (give or take a half)."""
        chosen = self.settings.seed if seed is None else seed
        await self._ask(self.supervisor.chaos(on, every=every, seed=chosen, names=AGENTS))

    @property
    def supervisor(self) -> Supervisor:
        """The owner's end of the supervisor."""
        return self._while_running(self._supervisor)

    def _while_running(self, what: Any) -> Any:
        if what is None or not self._running:
            raise DeskError("This desk has stopped: start another.")
        return what

    async def _from_stack(self, work: Awaitable[Any]) -> Any:
        """What the stack answers. Raises DeskError when it refuses, or cannot be reached for ANSWER seconds."""
        ended = self.supervisor.ended
        try:
            return await asyncio.wait_for(work, 1.0 if ended else ANSWER)
        except (TimeoutError, ls.LaserError) as error:
            if ended:
                raise DeskError("The supervisor has ended: start the desk again.") from None
            why = "did not answer in time" if isinstance(error, TimeoutError) else f"refused: {error}"
            raise DeskError(f"The stack {why}; what was asked may still have reached it.") from None

    def _specs(self, switches: Mapping[str, Mapping[str, str]]) -> Sequence[Spec]:
        return [self._spec(name, module, switches.get(name, {})) for name, module in self._modules.items()]

    def _spec(self, name: str, module: str, switches: Mapping[str, str] | None = None) -> Spec:
        return Spec(
            name=name,
            module=module,
            stream=self.stream,
            events_topic=EVENTS,
            folder=self.folder,
            settings=self.settings,
            switches=switches or {},
        )

    async def _ask(self, work: Any) -> Any:
        try:
            return await work
        except SupervisorError as error:
            raise DeskError(str(error)) from None


def _shipped(name: str) -> str:
    return f"desk.support.{name}"
