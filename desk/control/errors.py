"""What goes wrong at a desk, as one sentence for a person."""

import inspect
from typing import TypeVar

Value = TypeVar("Value")


class DeskError(RuntimeError):
    """Something a person asked of a desk cannot be done. Its text is one sentence."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback: where in the desk it was raised is of no use to a learner."""
        return [f"{type(self).__name__}: {self}"]


def awaited(value: Value) -> Value:
    """The value itself. Raises DeskError for one that is still to be awaited: a learner forgot to."""
    if inspect.isawaitable(value):
        name = getattr(value, "__name__", "it")
        raise DeskError(f"This is not there yet: write await before what makes it, as in await {name}(…).")
    return value
