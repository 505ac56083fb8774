"""The signs of life of a process's loop; and who gave none for too long leaves before it does anything more.

Whatever it still meant to do, its replacement has done.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

BEAT = 0.5
"""Seconds between two signs of life. A handler that waits gives them, one that blocks the loop does not."""
HANG = 15.0
"""Seconds without one after which a process is taken for hung; the switch `hang_after` overrides it."""
_GRACE = 3.0  # seconds more in which the supervisor's watchdog ends it; after them it does so itself


class Pulse:
    """The pulse of this process. tell: how the supervisor hears a beat; hang: seconds."""

    def __init__(self, tell: Callable[[], None], hang: float) -> None:
        self._tell, self._hang = tell, hang
        self._last = time.monotonic()

    async def beat(self) -> None:
        """Beat for as long as the loop turns. To be begun on the main thread, once.

        The loop itself cannot be asked whether it was held up: the handler that held it up, or whatever became due
        meanwhile, writes first. So a thread looks, which a blocked loop does not stop; and who was stopped and is
        continued looks before it runs another line, since Python handles a signal first.
        """
        self._last = time.monotonic()
        signal.signal(signal.SIGCONT, lambda *_: self._look(self._hang))
        threading.Thread(target=self._watch, name="pulse", daemon=True).start()
        while True:
            self._tell()
            await asyncio.sleep(BEAT)
            self._look(self._hang)
            self._last = time.monotonic()

    def _watch(self) -> None:
        while True:
            time.sleep(BEAT)
            self._look(self._hang + _GRACE)

    def _look(self, patience: float) -> None:
        silent = time.monotonic() - self._last
        if silent > patience:
            leave(f"Held up for {silent:.0f} s: another process may have taken over.")


def leave(last_words: str) -> NoReturn:
    """End this process now, with one line on stderr where there is room for one."""
    try:
        print(last_words, file=sys.stderr, flush=True)
    finally:
        os._exit(1)
