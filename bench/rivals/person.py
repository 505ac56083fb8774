"""The person at the desk, for every system the same: reads the book outside every 10 ms, answers each question at once."""

import asyncio
import contextlib
from collections.abc import Callable

from bench.rivals.outside import Note, parse
from bench.rivals.systems.system import System

_LOOK = 0.01  # seconds


class Person:
    """Follows one system's book until stopped."""

    def __init__(self, system: System) -> None:
        self.notes: list[Note] = []
        """Everything in the book so far."""
        self._system = system
        self._book = system.outside.file.open()
        self._rest = ""
        self._answers: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read())

    async def until(self, holds: Callable[[Note], bool], timeout: float) -> Note | None:
        """The first note that holds, or None when none has come in time. timeout in seconds."""
        deadline = asyncio.get_running_loop().time() + timeout
        seen = 0
        while True:
            for note in self.notes[seen:]:
                if holds(note):
                    return note
            seen = len(self.notes)
            if asyncio.get_running_loop().time() > deadline:
                return None
            await asyncio.sleep(_LOOK)

    async def stop(self) -> None:
        """Answer no more."""
        for task in (self._reading, *self._answers):
            task.cancel()
        for task in (self._reading, *self._answers):
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        self._book.close()

    async def _read(self) -> None:
        while True:
            *lines, self._rest = (self._rest + self._book.read()).split("\n")
            for note in parse(lines):
                self.notes.append(note)
                if note.what == "asked":
                    task = asyncio.create_task(self._system.approve(note.ticket))
                    self._answers.add(task)
                    task.add_done_callback(self._answers.discard)
            await asyncio.sleep(_LOOK)
