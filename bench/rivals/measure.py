"""The runs themselves: a kill in the hold (A), one between effect and record (B), and chaos. One system at a time."""

import asyncio
import contextlib
import os
import random
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.rivals.counting import Chaos, Counts, Recovery, chaos, count, recovery
from bench.rivals.environments import RivalsError
from bench.rivals.outside import Note
from bench.rivals.person import Person
from bench.rivals.systems.system import System

INTO_HOLD = 0.3
"""Seconds from the beginning of the hold to the kill of A."""
TICKETS, EVERY = 20, 0.2
KILLS_FOR, AT_MOST = 20.0, 60.0
_PATIENCE = 40.0  # seconds for one ticket

Make = Callable[[], System]


@asynccontextmanager
async def running(make: Make) -> AsyncIterator[tuple[System, Person]]:
    """A system on a fresh folder, and the person who answers it."""
    with tempfile.TemporaryDirectory(prefix="rivals-", ignore_cleanup_errors=True) as scratch:
        system = make()
        try:
            await system.start(Path(scratch))
            person = Person(system)
            try:
                yield system, person
            finally:
                await person.stop()
        finally:
            await system.stop()


async def one_kill(make: Make) -> tuple[Recovery, Recovery]:
    """A and B on one system: a ticket each, after one that is left alone and not measured."""
    async with running(make) as (system, person):
        first = await system.open()
        await person.until(lambda note: note.ticket == first and note.what == "closed", _PATIENCE)
        return await kill_in_hold(system, person), await kill_after_paying(system, person)


async def kill_in_hold(system: System, person: Person) -> Recovery:
    """A: SIGKILL the process that holds the ticket, 0.3 s into the hold."""
    ticket = await system.open()
    began = await _reached(person, ticket, "hold")
    await asyncio.sleep(max(0.0, began.at + INTO_HOLD - time.time()))
    return await _killed(system, person, ticket, began.pid)


async def kill_after_paying(system: System, person: Person) -> Recovery:
    """B: SIGKILL the process that has just paid and not yet recorded it."""
    system.outside.plan_stop()
    ticket = await system.open()
    paid = await _reached(person, ticket, "paid")
    return await _killed(system, person, ticket, paid.pid)


async def under_chaos(make: Make, seed: int) -> Chaos:
    """20 tickets 0.2 s apart while all the system's working processes are killed together every 1 to 2 s."""
    async with running(make) as (system, person):
        opened: dict[str, float] = {}
        began = time.time()
        monkey = Monkey(system, seed)
        try:
            for number in range(TICKETS):
                await asyncio.sleep(began + number * EVERY - time.time())
                at = time.time()
                opened[await system.open()] = at
            for ticket in opened:
                await person.until(_is(ticket, "closed"), began + AT_MOST - time.time())
        finally:
            await monkey.stop()
        counts = [_count(system, ticket) for ticket in opened]
        return chaos(opened, system.outside.notes(), monkey.kills, sum(counts[1:], counts[0]))


class Monkey:
    """Kills until stopped, for 20 s at most. The same seed kills at the same moments."""

    def __init__(self, system: System, seed: int) -> None:
        self.kills = 0
        self._system = system
        self._task = asyncio.create_task(self._kill(random.Random(seed)))

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _kill(self, draw: random.Random) -> None:
        next_at = began = time.time()
        while (next_at := next_at + draw.uniform(1.0, 2.0)) < began + KILLS_FOR:
            await asyncio.sleep(next_at - time.time())
            for pid in self._system.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.kills += 1


async def _killed(system: System, person: Person, ticket: str, pid: int) -> Recovery:
    at = time.time()
    os.kill(pid, signal.SIGKILL)
    await person.until(_is(ticket, "closed"), _PATIENCE)
    return recovery(ticket, system.outside.notes(), at, _count(system, ticket))


async def _reached(person: Person, ticket: str, what: str) -> Note:
    note = await person.until(_is(ticket, what), _PATIENCE)
    if note is None:
        raise RivalsError(f"{ticket} did not reach {what} within {_PATIENCE:g} s.")
    return note


def _is(ticket: str, what: str) -> Callable[[Note], bool]:
    return lambda note: note.ticket == ticket and note.what == what


def _count(system: System, ticket: str) -> Counts:
    bank = system.outside.bank
    paid = [payment.key for payment in bank.payments()]
    return count(ticket, system.outside.notes(), bank.asked(), paid)
