"""A coroutine as a cell's result: nothing has begun, and the notebook says so, as for every other slip."""

from types import CoroutineType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


def told(work: "CoroutineType[Any, Any, Any]") -> str:
    """What a learner reads in place of the coroutine's address."""
    name = work.__qualname__.rpartition(".")[2]
    return f"Nothing has begun: write await before it, as in await support.{name}(…), and run it again."


def install(shell: InteractiveShell | None) -> None:
    """Let a notebook show it. Outside of one nothing is done; doing it again changes nothing."""
    if shell is not None and shell.display_formatter is not None:
        texts = shell.display_formatter.formatters["text/plain"]
        texts.for_type(CoroutineType, lambda work, printer, _cycle: printer.text(told(work)))
