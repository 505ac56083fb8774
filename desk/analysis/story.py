"""One ticket's story, folded from the events topic and nothing else: its own events and the deaths that hit it.

Rules. Events come in log order. A repeat (same id: written again after a kill) is dropped for reading; counting
keeps it. A process has a handoff in its hands from its first event about it (fields pid and step) until it writes
`done` for it. A death then hits the ticket; the next start of the same agent belongs to the story too. Nothing
here asks a process anything.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

Event = Mapping[str, Any]

DEATHS = frozenset({"killed", "died"})
"""Somebody killed the process; it ended and nobody had asked."""

DECISIONS = frozenset({"approved", "declined"})

DONE = "done"
"""A handler has finished and is about to acknowledge: it ends what the process holds, and is not shown."""

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
    """What happened to this ticket: its events, the deaths that hit it, the starts that followed. Repeats kept."""
    story = []
    held: dict[Any, set[Any]] = {}
    orphaned: set[Any] = set()
    for event in events:
        kind, agent, pid, step = event["kind"], event.get("agent"), event.get("pid"), event.get("step")
        if event.get("ticket") == ticket:
            if kind == DONE:
                held.get(pid, set()).discard(step)
                continue
            story.append(event)
            if step is not None:
                held.setdefault(pid, set()).add(step)
        elif kind in DEATHS and held.pop(pid, set()):
            story.append(event)
            orphaned.add(agent)
        elif kind == "agent_up" and agent in orphaned:
            story.append(event)
            orphaned.discard(agent)
    return causes_first(last_words_first(story))


def last_words_first(story: Iterable[Event]) -> list[Event]:
    """The same events with each death behind the last words of its process.

    `killed` is written before the SIGKILL, so what the process wrote in between stands behind it on the log.
    """
    ordered: list[Event] = []
    deaths: dict[Any, int] = {}
    for event in story:
        pid = event.get("pid")
        if event["kind"] in DEATHS and pid is not None:
            deaths[pid] = len(ordered)
        elif pid in deaths:
            ordered.insert(deaths[pid], event)
            deaths = {dead: at + (at >= deaths[pid]) for dead, at in deaths.items()}
            continue
        ordered.append(event)
    return ordered


def causes_first(story: list[Event]) -> list[Event]:
    """The same events with each `handoff` right after what its writer did before it in the same work.

    An agent sends the work on and then writes that it did; the next agent can be quicker to write, and then the log
    has the effect before its cause.
    """
    ordered: list[Event] = []
    for event in story:
        here = len(ordered)
        if event["kind"] == "handoff":
            mine = (event.get("pid"), event.get("step"))
            before = (i for i, e in enumerate(ordered, 1) if (e.get("pid"), e.get("step")) == mine)
            here = max(before, default=here)
        ordered.insert(here, event)
    return ordered


def plain(text: str | None) -> str:
    """An event's text without process ids, so that two runs read the same."""
    return _PID.sub("", text or "")
