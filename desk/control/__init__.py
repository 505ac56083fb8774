"""What a person can do with a running desk, as coroutines: start it, open a ticket, kill, approve, wait for an event."""

import importlib
from typing import Any

from desk.control.errors import DeskError

DESKS = ("support", "fleet")

__all__ = ["DeskError", "start"]


async def start(desk: str, *, resume: bool = False, **settings: Any) -> Any:
    """Start a desk on a fresh folder, or on the one it left with `resume`. desk: "support" or "fleet".

    The rest are settings such as policy_pause=8, and what the desk's own `start` takes. Raises DeskError.
    """
    if desk not in DESKS:
        raise DeskError(f"There is no desk {desk!r}: choose support or fleet.")
    return await importlib.import_module(f"desk.control.{desk}").start(resume=resume, **settings)
