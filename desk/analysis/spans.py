"""What agents did between which events: steps, holds, deaths and replays, folded from the events of a day. Pure.

A step is in an agent's hands from the first event about it (start, or replay in the process after a death) until it
writes `step` (done), parks the message, or dies. Times are seconds since the first event; minutes are the demo clock's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from desk.analysis.story import DEATHS, Event, last_words_first

PERSON = "person"
DECISIONS = frozenset({"approved", "declined", "fixed", "redriven", "quarantined", "reinstated"})
"""What a person decided or did at the desk."""


@dataclass(frozen=True)
class Span:
    """A step in one agent's hands, seconds. `end` is how it ended: "done", "parked", "killed" or "" (not yet)."""

    agent: str
    incident: str
    step: str
    begin: float
    finish: float
    end: str


@dataclass(frozen=True)
class Mark:
    """Something that happened at one moment to one agent: a death, a replay, a person's decision."""

    agent: str
    kind: str
    at: float
    incident: str = ""


@dataclass(frozen=True)
class Spans:
    """Everything a gantt draws. `clock` holds (seconds, demo minute) in ascending order; `length` is in seconds."""

    steps: tuple[Span, ...]
    holds: tuple[Span, ...]
    marks: tuple[Mark, ...]
    clock: tuple[tuple[float, float], ...]
    length: float


def spans(events: Sequence[Event]) -> Spans:
    """Fold a day's events (log order, each once)."""
    begun = min((event["at"] for event in events), default=0.0)
    last = max((event["at"] - begun for event in events), default=0.0)
    held: dict[tuple[str, str, str], float] = {}
    holding: dict[tuple[str, str, str], float] = {}
    steps: list[Span] = []
    holds: list[Span] = []
    marks: list[Mark] = []
    for event in last_words_first(events):
        kind, agent, at = event["kind"], event.get("agent") or "", event["at"] - begun
        key = (agent, event.get("incident") or "", event.get("step") or "")
        if kind in DEATHS:
            marks.append(Mark(agent, kind, at))
            for open_, done in ((held, steps), (holding, holds)):
                done += [Span(*k, open_.pop(k), at, kind) for k in list(open_) if k[0] == agent]
        elif kind in DECISIONS:
            marks.append(Mark(PERSON, kind, at, key[1]))
        elif kind == "replay":
            marks.append(Mark(agent, kind, at, key[1]))
            held.setdefault(key, at)
        elif kind == "start":
            held.setdefault(key, at)
        elif kind == "holding":
            holding[key] = at
        elif kind in ("step", "parked"):
            end = "done" if kind == "step" else kind
            if key in holding:
                holds.append(Span(*key, holding.pop(key), at, end))
            steps.append(Span(*key, held.pop(key, at), at, end))  # a saved result is answered without a start
    for open_, done in ((held, steps), (holding, holds)):
        done += [Span(*key, at, last, "") for key, at in open_.items()]
    return Spans(tuple(steps), tuple(holds), tuple(marks), tuple(_clock(events, begun)), last)


def _clock(events: Iterable[Event], begun: float) -> Iterator[tuple[float, float]]:
    """Where the demo clock stood when, never going back."""
    minute = -1.0
    for event in events:
        now = event.get("minute")
        if now is not None and now > minute:
            minute = now
            yield event["at"] - begun, now


def recovering(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The same events as `recovery.recoveries` reads them: a step is named with its exception, its end is `done`.

    Only steps count as work in hand; dispatch resumes a whole exception, which counts as its step.
    """
    told = []
    for event in events:
        kind, incident, step = event["kind"], event.get("incident"), event.get("step")
        if event.get("agent") == "dispatch" and kind in ("exception", "resume", "closed") and incident:
            told.append({**event, "step": incident, "kind": "done" if kind == "closed" else kind})
        elif step and kind in ("start", "checkpoint", "holding", "replay", "step", "parked"):
            end = kind in ("step", "parked")
            told.append({**event, "step": f"{incident}:{step}", "kind": "done" if end else kind})
        else:
            told.append({**event, "step": None})
    return told
