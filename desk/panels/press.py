"""A button that starts one coroutine of desk.control and nothing else.

Rules. The click callback only schedules; a click while the last one is in flight does nothing, nor does the second
half of a double click, which would kill the process that has just replaced the one aimed at. What goes wrong is
one sentence on the panel, never a traceback in a log nobody reads. The loop is the one the panel was made on, so a
front end that delivers clicks on another thread works the same.
"""

import asyncio
from collections.abc import Awaitable, Callable

import ipywidgets as widgets
import laser_sdk as ls

DOUBLE_CLICK = 0.5
"""Seconds within which a second click is part of the first."""


class Press:
    """Binds `button` to `work`. `say(sentence)` shows what went wrong; an empty sentence clears the last one.

    `rest` is how long, in seconds, the button stays off after its work is done.
    """

    def __init__(
        self,
        button: widgets.Button,
        work: Callable[[], Awaitable[object]],
        say: Callable[[str], None],
        *,
        rest: float = DOUBLE_CLICK,
    ) -> None:
        self.button, self._work, self._say, self._rest = button, work, say, rest
        self._loop = asyncio.get_running_loop()
        self._in_flight, self._allowed = False, True
        button.on_click(self._clicked)

    def allow(self, allowed: bool) -> None:
        """Whether a click makes sense now; shown by the button being enabled."""
        self._allowed = allowed
        self._show()

    def _show(self) -> None:
        disabled = self._in_flight or not self._allowed
        if self.button.disabled != disabled:
            self.button.disabled = disabled

    def _clicked(self, _button: widgets.Button) -> None:
        if self._in_flight or not self._allowed:
            return
        self._in_flight = True
        asyncio.run_coroutine_threadsafe(self._run(), self._loop)

    async def _run(self) -> None:
        self._show()
        try:
            self._say("")
            await self._work()
        except Exception as error:
            self._say(sentence(error))
        finally:
            await asyncio.sleep(self._rest)
            self._in_flight = False
            self._show()


def sentence(error: BaseException) -> str:
    """An error as one line for a person: its own first line, or its kind when it says nothing."""
    text = str(error).strip().splitlines()
    if isinstance(error, ls.TransportError):
        return f"The stack cannot be reached ({text[0] if text else 'no reason given'})."
    return text[0] if text else f"{type(error).__name__} without a message."
