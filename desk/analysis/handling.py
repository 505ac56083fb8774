"""How far each exception is: its steps, who has which, what came of it. Folded from the events alone. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from desk.analysis.spans import DEATHS
from desk.analysis.story import last_words_first
from desk.delivery.exceptions import STEPS

Event = Mapping[str, Any]

ORDER, BILL = "order", "bill"


@dataclass(frozen=True)
class Step:
    """One step of an exception: `state` is waiting, in hand, holding, replayed, parked, lost (its agent died) or done;
    `agent` who has or had it last.
    """

    name: str
    state: str = "waiting"
    agent: str = ""
    text: str = ""


@dataclass(frozen=True)
class Handling:
    """One exception as the log tells it. `minute` is when it was opened; `text` the last thing said about it."""

    incident: str
    kind: str
    van: str
    minute: float
    open: bool
    steps: tuple[Step, ...]
    text: str


_STATES = {
    "start": "in hand",
    "checkpoint": "in hand",
    "holding": "holding",
    "replay": "replayed",
    "asked": "asks a person",
    "parked": "parked",
    "redriven": "waiting",
    "step": "done",
}
"""Of a step, after an event about it; a message that was sent again is in nobody's hands until somebody begins."""


def handlings(events: Iterable[Event]) -> list[Handling]:
    """Every exception in the order they were opened."""
    found: dict[str, dict[str, Any]] = {}
    steps: dict[str, dict[str, Step]] = {}
    for event in last_words_first(events):
        kind, incident = event["kind"], event.get("incident") or ""
        if kind == "exception":
            names = ("invoice-check",) if event["state"] == BILL else STEPS.get(event["state"], ())
            steps.setdefault(incident, {name: Step(name) for name in names})
            found.setdefault(incident, {**event, "open": True})
        elif kind in DEATHS:
            _lose(steps, event.get("agent") or "")
        elif kind == "closed" and incident in found:
            found[incident]["open"] = False
        elif kind in _STATES and event.get("step") in steps.get(incident, {}):
            before = steps[incident][event["step"]]
            agent = event["agent"] if kind != "redriven" else ""
            text = (event.get("text") or "") if kind == "step" else before.text
            if before.state != "done":
                steps[incident][event["step"]] = Step(before.name, _STATES[kind], agent, text)
    return [
        Handling(
            incident=incident,
            kind=first["state"],
            van=first.get("van") or "",
            minute=first.get("minute") or 0.0,
            open=first["open"],
            steps=tuple(steps[incident].values()),
            text=next(
                (s.text for s in reversed(steps[incident].values()) if s.text), first.get("text") or ""
            ),
        )
        for incident, first in found.items()
    ]


def _lose(steps: Mapping[str, dict[str, Step]], agent: str) -> None:
    """Whatever that agent had in hand nobody has now."""
    for mine in steps.values():
        for name, step in mine.items():
            if step.agent == agent and step.state not in ("done", "parked", "waiting"):
                mine[name] = Step(name, "lost", agent, step.text)
