"""What stands in key-value state and where a group stands in its lane, as tables that two runs share."""

import asyncio
import json
import re
from typing import Any

import pandas as pd

from desk.analysis.sheet import Sheet
from desk.control.support import SupportDesk

_STILL = (
    0.1  # seconds between two looks at a group's offsets; when both are the same it has caught up or waits
)


async def kept(support: SupportDesk, namespace: str) -> Sheet:
    """Every key of a namespace ("checkpoints", "ledger", "decisions", …) with its value."""
    entries = await _all(support, namespace)
    rows = [(key, readable(value)) for key, value in sorted(entries.items(), key=_in_order)]
    return Sheet(pd.DataFrame(rows, columns=["key", "value"]).set_index("key"))


async def offsets(support: SupportDesk, agent: str) -> Sheet:
    """How far an agent's group has acknowledged the lane, and how far the lane goes, where anything was written.

    Partitions are left out of the table: which one a ticket falls into differs from run to run.
    """
    now = await support.group(agent)
    before = None
    while now != before:
        await asyncio.sleep(_STILL)
        before, now = now, await support.group(agent)
    rows = [(agent, o.stored, o.head, o.head - o.stored) for o in now if o.stored is not None]
    columns = ["group", "acknowledged up to", "newest", "not acknowledged yet"]
    return Sheet(pd.DataFrame(rows, columns=columns).set_index("group"))


def _in_order(entry: tuple[str, bytes]) -> list[tuple[int, str]]:
    """t-2 before t-11."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", entry[0])]


def readable(value: bytes) -> str:
    """A stored value in words: JSON as `key: value`, a checkpoint as the offset it stands at."""
    found = json.loads(value)
    if isinstance(found, dict) and set(found) == {"cp"}:
        return _bookmark(json.loads(found["cp"]))
    if isinstance(found, dict):
        return ", ".join(f"{key}: {part}" for key, part in found.items())
    return str(found)


def _bookmark(checkpoint: dict[str, Any]) -> str:
    """A checkpoint holds, for every partition, the offset of the next record to come; most are 0 here."""
    topics = checkpoint["per_topic"].items()
    return "; ".join(f"{topic}: next offset {_written(partitions)}" for topic, partitions in topics)


def _written(partitions: dict[str, int]) -> str:
    return ", ".join(str(offset) for offset in partitions.values() if offset) or "0"


async def _all(support: SupportDesk, namespace: str) -> dict[str, bytes]:
    entries = await support.laser.kv(namespace).scan().entries()
    return {entry.key_str(): bytes(entry.value) for entry in entries}
