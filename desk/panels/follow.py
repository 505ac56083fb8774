"""Keeps a panel up to date: its work runs soon after new events, or on a beat of its own; what fails is one sentence."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from desk.control.errors import DeskError
from desk.panels.press import sentence

BEAT = 0.2
"""Seconds in which all that happens is shown at once."""


class Follow:
    """Runs `work` after events of `desk`. `say(sentence)` shows trouble; an empty sentence takes it away again."""

    def __init__(self, desk: Any, work: Callable[[], Awaitable[None]], say: Callable[[str], None]) -> None:
        self._work, self._say = work, say
        self._loop = asyncio.get_running_loop()
        self._due, self._trouble = False, False
        self._task: asyncio.Task[None] | None = None
        desk.listen(lambda _events: self.soon())
        desk.hear(say)
        self.soon()

    def soon(self) -> None:
        """Bring it up to date within a beat."""
        if not self._due:
            self._due = True
            self._loop.call_later(BEAT, self._start)

    def _start(self) -> None:
        if self._task is not None and not self._task.done():
            self._loop.call_later(BEAT, self._start)
            return
        self._due = False
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._work()
            if self._trouble:
                self._say("")
            self._trouble = False
        except Exception as error:  # a panel that fails says so; it has nobody to raise to
            self._trouble = True
            self._say(sentence(error))


class Beat:
    """Runs `work` every so many seconds from now until the desk has stopped. `say(sentence)` shows trouble.

    `still` comes before what went wrong, `stopped` is what remains to be said of a desk that was stopped. What the desk
    itself says (its log cannot be read, its supervisor has ended) explains more, and goes first.
    """

    def __init__(
        self,
        desk: Any,
        work: Callable[[], Awaitable[None]],
        say: Callable[[str], None],
        *,
        every: float,
        still: str,
        stopped: str,
    ) -> None:
        self._desk, self._work, self._say = desk, work, say
        self._every, self._still, self._stopped = every, still, stopped
        self._heard = self._trouble = self._said = ""
        desk.hear(self._hear)
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self._work()
                self._trouble = ""
            except Exception as error:  # nobody awaits this task: what it does not say is lost
                if isinstance(error, DeskError) and not self._desk.running:
                    self._say(self._stopped)
                    return
                self._trouble = f"{self._still}: {sentence(error)}"
            self._tell()
            await asyncio.sleep(self._every - asyncio.get_running_loop().time() % self._every)

    def _hear(self, words: str) -> None:
        self._heard = words
        if not self.task.done():
            self._tell()

    def _tell(self) -> None:
        words = self._heard or self._trouble
        if words != self._said:
            self._said = words
            self._say(words)


def background(work: Callable[[], Awaitable[Any]], say: Callable[[str], None]) -> Callable[[], None]:
    """A callback that starts a coroutine on the loop it was made on, from any thread; trouble is one sentence."""
    loop = asyncio.get_running_loop()

    async def run() -> None:
        say("")
        try:
            await work()
        except Exception as error:
            say(sentence(error))

    def start() -> None:
        asyncio.run_coroutine_threadsafe(run(), loop)

    return start
