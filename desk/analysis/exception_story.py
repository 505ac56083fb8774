"""One exception's story, folded from the events topic: its own events, the deaths that hit it, the starts after them.

A process has the exception in its hands from its first event about one of its steps until that step is done; dispatch
has it from opening (or resuming) it until it is closed. A death in between belongs to the story. Positions and what
the vans do otherwise do not.
"""

import re
from collections.abc import Iterable

from desk.analysis.spans import DEATHS
from desk.analysis.story import Event, distinct, last_words_first
from desk.analysis.timeline import Timeline

_RUN = re.compile(r"workflow \w+ ")
_LEFT_OUT = frozenset({"told"})
"""One a customer: `told` has a table of its own."""


class ExceptionTimeline(Timeline):
    """As a ticket's; what a process has in its hands is a step."""

    thing = "exception"
    unit = "step"


def story(events: Iterable[Event], incident: str) -> ExceptionTimeline:
    """What happened to this exception, in log order. The run's random id is left out of the texts."""
    kept: list[Event] = []
    holding: dict[str, set[str]] = {}
    lost: set[str] = set()
    for event in distinct(events):
        kind, agent, step = event["kind"], event.get("agent") or "", event.get("step")
        if event.get("incident") == incident:
            if kind not in _LEFT_OUT:
                kept.append({**event, "text": _RUN.sub("workflow ", event.get("text") or "")})
            _hold(holding.setdefault(agent, set()), kind, step)
        elif kind in DEATHS and holding.get(agent):
            kept.append(event)
            holding[agent] = set()
            lost.add(agent)
        elif kind == "agent_up" and agent in lost:
            kept.append(event)
            lost.discard(agent)
    return ExceptionTimeline(incident, tuple(last_words_first(kept)))


def _hold(held: set[str], kind: str, step: str | None) -> None:
    if kind in ("exception", "resume"):
        held.add("")
    elif kind == "closed":
        held.discard("")
    elif kind in ("start", "replay") and step:
        held.add(step)
    elif kind in ("step", "parked") and step:
        held.discard(step)
