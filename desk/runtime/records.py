"""What a message on a topic says, if it is a record: anybody may publish there, and not everybody writes JSON."""

from typing import Any

import laser_sdk as ls

_EVENT = {"id": str, "at": int | float, "kind": str, "agent": str, "pid": int}
"""What every event of a desk has."""


def record(message: ls.Message) -> dict[str, Any] | None:
    """The JSON object this message carries; None for bytes that are no JSON and for JSON that is no object."""
    try:
        said = message.json()
    except (ls.CodecError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def event(message: ls.Message) -> dict[str, Any] | None:
    """The event a process of a desk wrote; None for anything else that somebody put on the topic."""
    said = record(message)
    whole = said is not None and all(isinstance(said.get(field), kind) for field, kind in _EVENT.items())
    return said if whole else None
