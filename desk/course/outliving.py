"""Processes that are not dead: freeze one, or let another do its work and the first one then go on."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from desk.control.errors import DeskError
from desk.control.events import Event
from desk.control.lane import Ticket
from desk.control.support import SupportDesk
from desk.proving.relay import Relay
from desk.proving.stage import python, replacement
from desk.runtime.events import Events
from desk.support.agent import EVENTS

_CONTINUED = 0.5  # seconds the first process waits when it goes on: its connections have ended meanwhile
_PATIENCE = 60.0  # seconds for the first process to finish what it was at
_UNHURRIED = "600"  # seconds until who stands still is taken for hung: here it is meant to
_LOOK = 0.01


def freeze(desk: SupportDesk, agent: str) -> str:
    """Stop that process (SIGSTOP): it exists and does nothing until it is killed. Raises DeskError."""
    if agent not in desk.processes:
        raise DeskError(f"There is no process named {agent!r}: there is {', '.join(desk.processes)}.")
    pid = desk.processes[agent].pid
    if not pid:  # between two lives; 0 would stop the notebook itself
        raise DeskError(f"{agent} has no process at this moment: it is {desk.processes[agent].state}.")
    os.kill(pid, signal.SIGSTOP)
    return f"{agent} stands still (SIGSTOP)"


async def outlived(desk: SupportDesk, agent: str, at: str, **switches: str) -> Ticket:
    """A refund whose `agent` is stopped (SIGSTOP) and cut off at the event `at`; another process finishes the ticket,
    then the first is continued (SIGCONT). `switches`, such as bank="forgetful", are both processes'.

    Returns when the first has done what it still meant to do. Raises DeskError.
    """
    login, _, where = desk.supervisor.connection.rpartition("@")
    host, _, port = where.partition(":")
    relay = Relay(host, int(port))
    mine = {
        "connection": f"{login}@127.0.0.1:{await relay.open()}",
        "die_at": at,
        "stands": "1",
        "die_wait": f"{_CONTINUED:g}",
        "hang_after": _UNHURRIED,
    }
    try:
        await desk.restart(agent, **mine, **switches)
        ticket = await desk.open_ticket("duplicate")
        await desk.until(ticket, "asked")
        await desk.approve(ticket)
        await desk.until(ticket, at)
        first = desk.processes[agent].pid
        freeze(desk, agent)
        relay.sever()
        events = Events(desk.laser, EVENTS, agent)
        await events.emit("stopped", pid=first, ticket=ticket, text="stopped (SIGSTOP), taken for dead")
        async with _another(desk, agent, switches):
            await desk.until(ticket, "closed")
            await _acknowledged(desk, agent)
            await events.emit("continued", pid=first, ticket=ticket, text="the first one goes on (SIGCONT)")
            os.kill(first, signal.SIGCONT)
            await _finished(desk, agent, ticket, first)
    finally:
        await desk.restart(agent, **dict.fromkeys((*mine, *switches), ""))
        await relay.close()
    return ticket


@asynccontextmanager
async def _another(desk: SupportDesk, agent: str, switches: dict[str, str]) -> AsyncIterator[None]:
    """A second process of this agent, as it is shipped, which no supervisor knows; it goes with the block."""
    spec = replacement(desk, agent, f"desk.support.{agent}", EVENTS, **switches)
    with (desk.folder / "logs" / "another.err").open("ab") as log:
        process = await python("-m", "desk.proving.stray", stderr=log)
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
        yield
    finally:
        process.kill()
        await process.wait()


async def _acknowledged(desk: SupportDesk, agent: str) -> None:
    async with asyncio.timeout(_PATIENCE):
        while any(offset.stored < offset.head for offset in await desk.group(agent)):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)


async def _finished(desk: SupportDesk, agent: str, ticket: Ticket, first: int) -> None:
    """Wait until the first process is done with the ticket."""

    def done(event: Event) -> bool:
        return event["kind"] == "done" and event.get("pid") == first and event.get("ticket") == ticket

    await desk.log.wait(done, _PATIENCE, lambda: f"The first {agent} did not go on within {_PATIENCE:g} s.")
