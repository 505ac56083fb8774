"""The agents of a support desk in other forms: without their pattern, from other code, with another bank."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from desk.control import arguments, code
from desk.control.errors import DeskError
from desk.control.running import Running
from desk.runtime.events import Events
from desk.settings import Settings
from desk.support.agent import EVENTS, LANE

AGENTS = ("triage", "resolver", "billing")
BASELINES = ("resolver", "billing")
"""Those that keep a checkpoint or a ledger, and can do without."""
BANKS = ("forgetful", "keyed")


class Processes(Running):
    """What one can do with a support desk's processes beyond killing them."""

    agents = AGENTS
    topic = EVENTS

    def __init__(self, settings: Settings, folder: Path, stream: str, on_line: Callable[[str], None]) -> None:
        super().__init__(settings, folder, stream, on_line)
        self._modules = {name: _shipped(name) for name in AGENTS}

    @property
    def shipped(self) -> Sequence[str]:
        """The agents that run as they are shipped."""
        return [name for name in AGENTS if self._modules[name] == _shipped(name)]

    async def use_baseline(self, *names: str) -> None:
        """Let these agents run without checkpoint and ledger; all that have a baseline when none is named."""
        for name in names:
            if name == "triage":
                raise DeskError("triage has no baseline: it keeps no checkpoint and no ledger.")
            arguments.choice(name, BASELINES, "agent with a baseline named")
        for name in names or BASELINES:
            await self.restart(name, baseline="1")

    async def use_shipped(self, *names: str) -> None:
        """Let these agents run as they are shipped, code and switches; all that do not when none is named."""
        changed = [name for name in AGENTS if self._modules[name] != _shipped(name)]
        for name in names:
            arguments.choice(name, AGENTS, "shipped agent named")
        for name in names or dict.fromkeys([*BASELINES, *changed]):
            if name in changed:
                await self.use_module(name, _shipped(name), "the shipped code again", baseline="")
            else:
                await self.restart(name, baseline="")

    async def use_code(self, name: str, text: str) -> str:
        """Run an agent from this text: the whole of a module with a main. A name that is new makes a new agent.

        Returns the module's name. Raises DeskError, one sentence with the line, for a text that cannot be an agent;
        what ran before still runs.
        """
        if not isinstance(text, str):
            raise DeskError(f"The code of an agent is text, not {arguments.shown(text)}.")
        module = code.write(self.folder, arguments.words(name, "An agent's name", "clerk"), text)
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
        except DeskError as error:
            if not before:
                raise
            await self._tell(name, "the code before again")
            await self._become(name, before, {})
            raise DeskError(f"{error} The {name} that was running runs again.") from None

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
        known_bank(kind)
        await self.restart("billing", bank="forgetful" if kind == "forgetful" else "")


def known_bank(kind: str) -> str:
    """One of BANKS. Raises DeskError."""
    return arguments.choice(kind, BANKS, "bank named")


def _shipped(name: str) -> str:
    return f"desk.support.{name}"
