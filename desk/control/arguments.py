"""What a person gives to a desk, looked at before anything is done.

Each function returns the value, or raises DeskError: one sentence with what was wrong and what to do.
"""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

from desk.control.errors import DeskError, awaited


def words(value: Any, what: str, example: str) -> str:
    """Text that is not empty. `what` begins the sentence, as in "A customer"."""
    if not isinstance(awaited(value), str) or not value:
        raise DeskError(f"{what} is text such as {example!r}, not {shown(value)}.")
    return value


def choice(value: Any, choices: Iterable[str], what: str) -> str:
    """One of these; a slip of the pen is told what was probably meant. `what` as in "process named"."""
    known = list(choices)
    if isinstance(awaited(value), str) and value in known:
        return value
    hint = f"did you mean {near(value, known)}? Else " if near(value, known) else ""
    raise DeskError(f"There is no {what} {shown(value)}: {hint}choose from {', '.join(known)}.")


def near(value: Any, choices: Iterable[str]) -> str:
    """The one of these that was probably meant, or ""."""
    if not isinstance(value, str):
        return ""
    found = difflib.get_close_matches(value.lower(), list(choices), 1, 0.7)
    return found[0] if found and not _other_number(value, found[0]) else ""


def _other_number(one: str, other: str) -> bool:
    """Whether two names differ in their number alone: van-9 is no slip for van-2."""
    return one != other and one.rstrip("0123456789") == other.rstrip("0123456789") != one


def seconds(value: Any, what: str = "timeout", *, least: float = 0.0) -> float:
    """A number of seconds."""
    if not _is_number(awaited(value)) or math.isnan(value) or value < least:
        from_ = "above 0" if least else "from 0 on"
        raise DeskError(f"{what} is a number of seconds {from_}, such as 5, not {shown(value)}.")
    return value


def whole(value: Any, what: str) -> int:
    """A whole number from 0 on."""
    if isinstance(awaited(value), bool) or not isinstance(value, int) or value < 0:
        raise DeskError(f"{what} is a whole number such as 7, not {shown(value)}.")
    return value


def on_or_off(value: Any, what: str) -> bool:
    """True or False, and nothing that only counts as one of them: "off" is not empty, so it would be on."""
    if not isinstance(awaited(value), bool):
        raise DeskError(f"{what} is True or False, not {shown(value)}.")
    return value


def kinds(given: Sequence[Any]) -> Sequence[str]:
    """Kinds of events to wait for, at least one."""
    for kind in given:
        words(kind, "What to wait for", "closed")
    if not given:
        raise DeskError("Say what to wait for, such as asked or closed.")
    return given


def several(value: Any, what: str, example: str) -> list[Any]:
    """Several of something, for a parameter where one text would be taken apart letter by letter."""
    if isinstance(awaited(value), str) or not isinstance(value, Iterable):
        raise DeskError(f"{what} are a list such as {example}, not {shown(value)}.")
    return list(value)


def shown(value: Any) -> str:
    """A value as a sentence can hold it."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
