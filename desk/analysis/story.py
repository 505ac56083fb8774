"""One ticket's story, folded from the events topic and nothing else: its own events and the deaths that hit it.

Rules. Events come in log order. A repeat (same id: written again after a kill) is dropped for reading; counting
keeps it. A death hits a ticket when the last thing that process said about the ticket left work of its own
open; the next start of the same agent belongs to the story too. Nothing here asks a process anything.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

Event = dict[str, Any]

DEATHS = frozenset({"killed", "died"})
"""Somebody killed the process; it ended and nobody had asked."""

SETTLES = frozenset({"handoff", "asked", "closed"})
"""After one of these a process has nothing of the ticket left to do but acknowledge it."""

DECISIONS = frozenset({"approved", "declined"})

_PID = re.compile(r"\s*\(pid \d+[^)]*\)| pid \d+")


def distinct(events: Iterable[Event]) -> list[Event]:
    """The events in order, each id once, the first time it was written."""
    seen: set[str] = set()
    kept = []
    for event in events:
        if event["id"] not in seen:
            seen.add(event["id"])
            kept.append(event)
    return kept


def of_ticket(events: Iterable[Event], ticket: str) -> list[Event]:
    """What happened to this ticket, in log order: its events, the deaths that hit it, the starts that followed."""
    story = []
    at_work: set[int] = set()
    orphaned: set[str] = set()
    for event in events:
        kind, agent, pid = event["kind"], event.get("agent"), event.get("pid")
        if event.get("ticket") == ticket:
            story.append(event)
            if pid is not None:
                (at_work.discard if kind in SETTLES else at_work.add)(pid)
        elif kind in DEATHS and pid in at_work:
            story.append(event)
            at_work.discard(pid)
            orphaned.add(agent or "")
        elif kind == "agent_up" and agent in orphaned:
            story.append(event)
            orphaned.discard(agent)
    return story


def hits(events: Sequence[Event], tickets: Iterable[str]) -> dict[str, int]:
    """How many deaths hit each ticket."""
    return {t: sum(e["kind"] in DEATHS for e in of_ticket(events, str(t))) for t in tickets}


def plain(text: str | None) -> str:
    """An event's text without process ids, so that two runs read the same."""
    return _PID.sub("", text or "")
