"""This desk as it is shipped, started the way a person starts it; its agents are watched from outside, see `watched`."""

import asyncio
from pathlib import Path

from bench.rivals.outside import HOLD, Outside
from desk.control import start
from desk.control.support import AGENTS, SupportDesk


class LaserDesk:
    """The support desk with its embedded stack."""

    name = "Laser Desk"
    outside: Outside
    _support: SupportDesk | None = None

    async def start(self, folder: Path) -> None:
        self._support = await start("support", data=folder, policy_pause=HOLD)
        self.outside = Outside(self._support.folder)
        for name in AGENTS:
            await self._support.supervisor.restart(name, module="bench.rivals.watched")

    async def open(self) -> str:
        return str(await self._support.open_ticket("duplicate"))

    async def approve(self, ticket: str) -> None:
        await self._support.until(ticket, "asked")
        await self._support.approve(ticket)

    def pids(self) -> list[int]:
        return [pid for name in AGENTS if (pid := self._support.processes[name].pid)]

    async def stop(self) -> None:
        if self._support:
            await asyncio.shield(self._support.stop())
