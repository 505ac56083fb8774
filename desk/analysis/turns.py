"""A ticket's session as a table: every turn with its offset, and a line where the checkpoint is."""

from collections.abc import Sequence
from typing import Any

import laser_sdk as ls
import pandas as pd

from desk.analysis.palette import colour_of
from desk.analysis.sheet import Sheet
from desk.control.errors import awaited
from desk.control.support import SupportDesk
from desk.runtime.saved import get_json

LINE = "checkpoint here"
_COLUMNS = ["offset", "turn", "what", "from", "to"]


async def turns(support: SupportDesk, ticket: str, issue: int = 1) -> Sheet:
    """Every turn of the ticket's session, in log order, with `checkpoint here` across the table if there is one.

    What stands below the line is what `turns_since` returns. A ticket of several issues has a checkpoint for each.
    """
    session = support.laser.sessions().open(support.lane.session(awaited(ticket)))
    saved = await get_json(support.laser.kv("checkpoints"), f"{ticket}:resolve-{issue}")
    checkpoint = ls.Checkpoint.from_json(saved["cp"]) if saved else await session.checkpoint()
    before = await session.turns_at(checkpoint)
    return sheet(before, await session.turns_since(checkpoint), bool(saved))


def sheet(before: Sequence[Any], since: Sequence[Any], ruled: bool) -> Sheet:
    """The table of these turns, with the line between `before` and `since` when `ruled`."""
    rows = [_row(turn) for turn in before]
    if ruled:
        rows.append(("", LINE, "", "", ""))
    rows += [_row(turn) for turn in since]
    table = pd.DataFrame(rows, columns=_COLUMNS).set_index("offset")
    return Sheet(table, {"from": _agent, "to": _agent}, line=len(before) if ruled else None)


def _row(turn: Any) -> tuple[str, str, str, str, str]:
    envelope = turn.message.envelope
    what = envelope.get("tool") or envelope.get("operation") or ""
    offset = str(turn.message.id).rpartition(":")[2]
    return (offset, turn.display, what, envelope.get("source") or "", envelope.get("target") or "")


def _agent(name: str) -> str:
    return f'<span style="color:{colour_of(name)}">■</span> {name}' if name else ""
