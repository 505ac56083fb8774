"""What customers wrote, read from the log: enough to have another desk do the same day again."""

import json
from dataclasses import dataclass

from desk.control.support import SupportDesk
from desk.support.tickets import SCENARIOS


@dataclass(frozen=True)
class Letter:
    """One customer's message. answer: what the person said about its refund, "approve" or "decline"; due: how the
    ticket should end ("refunded", "refused", "manager", "answered", "unclear"), "" where nobody has said.
    """

    ticket: str
    text: str
    customer: str
    answer: str
    due: str


async def incoming(support: SupportDesk) -> list[Letter]:
    """Every customer's message on the log, in the order of the tickets."""
    tickets = dict.fromkeys(
        e["ticket"] for e in support.events() if str(e.get("ticket", "")).startswith("t-")
    )
    return [await _letter(support, ticket) for ticket in sorted(tickets, key=lambda t: int(t[2:]))]


async def _letter(support: SupportDesk, ticket: str) -> Letter:
    session = support.laser.sessions().open(support.lane.session(ticket))
    turns = await session.turns_at(await session.checkpoint())
    written = next(json.loads(turn.text()) for turn in turns if turn.display == "user.message")
    declined = any(event["kind"] == "declined" for event in support.events(ticket))
    due = next((s.outcome for s in SCENARIOS.values() if _is(s.text, written["text"])), "")
    return Letter(ticket, written["text"], written["customer"], "decline" if declined else "approve", due)


def _is(pattern: str, text: str) -> bool:
    """Whether a text is a scenario's, with some order's number filled in."""
    before, gap, after = pattern.partition("{order}")
    return text.startswith(before) and text.endswith(after) if gap else text == pattern
