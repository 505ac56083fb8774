"""How a benchmark ends early: Ctrl-C, SIGTERM and a closed terminal all stop what it started, then exit with 130."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, NoReturn

STOPS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def run(main: Callable[[], int | Coroutine[Any, Any, int]]) -> NoReturn:
    """Run a benchmark's `main`, plain or asynchronous, and exit with its code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    for number in STOPS:
        signal.signal(number, _interrupt)
    code = 130
    with contextlib.suppress(KeyboardInterrupt):
        given = main()
        code = given if isinstance(given, int) else asyncio.run(given)
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C, which cancels what `asyncio.run` runs and leaves the loop to it until it has stopped its own.

    Once: what is being stopped then is not to be interrupted in its turn.
    """
    for stop in STOPS:
        signal.signal(stop, lambda *_: None)  # not SIG_IGN, which a process started from here would inherit
    signal.raise_signal(signal.SIGINT)
