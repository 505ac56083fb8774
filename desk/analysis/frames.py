"""A delivery day minute by minute, folded from the records of its two topics and nothing else. Pure.

Rules. A van's last report in a demo minute is where it was then; a minute without one keeps the last. An event belongs
to the minute it names; who has no demo clock (the supervisor, a person at the desk) writes none, and then it is the
last minute named before it on the log. An event written twice (same id) counts once. Of the positions only one report
a van and minute is kept, so memory grows with the frames and not with the records. What is not the desk's is passed
over and counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from desk.delivery.ours import is_event, is_position

Record = Mapping[str, Any]

STATES = {
    "order": "ordered",
    "delivered": "delivered",
    "failed": "failed",
    "returned": "returned",
}
"""What an event does to its stop."""
_LEFT_OUT = ("after", "bill")
"""Parts of an event that only its writer needs."""
_DOING = ("start", "holding", "replay", "checkpoint", "asked")
_LET_GO = ("step", "parked")
_DEATHS = ("killed", "died")


@dataclass(frozen=True)
class Spot:
    """Where a van was: degrees, what it did there (driving, making, idle, stopped, parked), metres driven so far, the
    place it reached last and the one it was driving to ("" when to none).
    """

    lon: float
    lat: float
    status: str
    metres: float
    at: str
    to: str


@dataclass(frozen=True)
class Frame:
    """The day as it was at the end of one demo minute."""

    minute: int
    vans: Mapping[str, Spot]
    delivered: Mapping[str, int]
    """Drops made so far, by van; a van without one is 0."""
    failed: Mapping[str, int]
    stops: Mapping[str, str]
    """Stop -> ordered, delivered, failed or returned, as far as anything has happened there."""
    agents: Mapping[str, str]
    """Agent -> what it was doing: the step it holds, "up", or "down" between a death and the next start."""
    open: Mapping[str, str]
    """Exception -> its kind, for those opened and not yet closed."""
    events: tuple[Record, ...]
    """What happened in this minute, in log order; each has its `minute`."""


@dataclass
class Fold:
    """Takes records as they come off the cursors; `frames()` says what they add up to."""

    spots: dict[int, dict[str, Record]] = field(default_factory=dict)
    events: list[Record] = field(default_factory=list)
    foreign: int = 0
    """How many records were not the desk's."""
    _seen: set[str] = field(default_factory=set)
    _minute: float = 0.0

    def positions(self, records: Iterable[Any]) -> None:
        """Keep the last report of each van in each minute."""
        spots = self.spots
        for record in records:
            if not is_position(record):
                self.foreign += 1
                continue
            minute = int(record["minute"])
            if minute not in spots:
                spots[minute] = {}
            spots[minute][record["van"]] = record

    def happenings(self, records: Iterable[Any]) -> None:
        """Tag each event with its minute."""
        for record in records:
            if not is_event(record):
                self.foreign += 1
                continue
            if record["id"] in self._seen:
                continue
            self._seen.add(record["id"])
            minute = record.get("minute")
            self._minute = self._minute if minute is None else max(self._minute, minute)
            kept = {key: value for key, value in record.items() if key not in _LEFT_OUT}
            self.events.append({**kept, "minute": self._minute if minute is None else minute})

    def frames(self) -> list[Frame]:
        """One frame a minute from 0 to the last minute of the day; none when nothing was read."""
        by_minute: dict[int, list[Record]] = {}
        for event in self.events:
            by_minute.setdefault(int(event["minute"]), []).append(event)
        last = max([*self.spots, *by_minute], default=-1)
        vans: dict[str, Spot] = {}
        story = Story()
        found = []
        for minute in range(last + 1):
            if minute in self.spots:
                vans = {**vans, **{van: _spot(record) for van, record in self.spots[minute].items()}}
            events = tuple(by_minute.get(minute, ()))
            for event in events:
                story.take(event)
            found.append(story.frame(minute, dict(sorted(vans.items())), events))
        return found


def _spot(record: Record) -> Spot:
    return Spot(
        record["lon"], record["lat"], record["status"], record["metres"], record["at"], record["stop"]
    )


class Story:
    """What has happened up to an event."""

    def __init__(self) -> None:
        self.delivered: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.stops: dict[str, str] = {}
        self.open: dict[str, str] = {}
        self.holds: dict[str, dict[str, str]] = {}
        """Agent -> step in its hands -> in words; {"": "down"} between a death and the next start."""

    def take(self, event: Record) -> None:
        kind, agent = event["kind"], event.get("agent") or ""
        if kind in STATES and event.get("stop"):
            self.stops = {**self.stops, event["stop"]: STATES[kind]}
        if kind in ("delivered", "failed"):
            (self.delivered if kind == "delivered" else self.failed)[event["van"]] += 1
        elif kind == "exception":
            self.open = {**self.open, event["incident"]: event["state"]}
        elif kind == "closed":
            self.open = {i: k for i, k in self.open.items() if i != event["incident"]}
        elif kind in _DEATHS:
            self.holds[agent] = {"": "down"}
        elif kind == "agent_up":
            self.holds[agent] = {}
        elif event.get("step") and kind in (*_DOING, *_LET_GO):
            held = self.holds.setdefault(agent, {})
            held.pop("", None)
            if kind in _LET_GO:
                held.pop(f"{event['incident']}:{event['step']}", None)
            else:
                verb = "" if kind == "start" else f", {kind}"
                held[f"{event['incident']}:{event['step']}"] = f"{event['step']} of {event['incident']}{verb}"

    def frame(self, minute: int, vans: Mapping[str, Spot], events: tuple[Record, ...]) -> Frame:
        return Frame(
            minute=minute,
            vans=vans,
            delivered={van: self.delivered[van] for van in vans},
            failed={van: self.failed[van] for van in vans},
            stops=self.stops,
            agents={agent: "; ".join(held.values()) or "up" for agent, held in sorted(self.holds.items())},
            open=self.open,
            events=events,
        )


def table(frames: Iterable[Frame]) -> pd.DataFrame:
    """One row a minute and van: lon, lat, status, metres, at, to, and the drops delivered and failed so far."""
    rows = [
        (f.minute, van, s.lon, s.lat, s.status, s.metres, s.at, s.to, f.delivered[van], f.failed[van])
        for f in frames
        for van, s in f.vans.items()
    ]
    columns = ["minute", "van", "lon", "lat", "status", "metres", "at", "to", "delivered", "failed"]
    return pd.DataFrame(rows, columns=columns).set_index(["minute", "van"])


def happenings(frames: Iterable[Frame]) -> pd.DataFrame:
    """One row an event in log order within its minute: minute, agent, kind, by, van, stop, incident, step, state,
    text; `by` is who asked for it (code, a button, chaos), "" where nobody did.
    """
    columns = ["minute", "agent", "kind", "by", "van", "stop", "incident", "step", "state", "text"]
    rows = [[event.get(c) or "" for c in columns[1:]] for f in frames for event in f.events]
    minutes = [f.minute for f in frames for _ in f.events]
    return pd.DataFrame(rows, columns=columns[1:], index=pd.Index(minutes, name="minute"))
