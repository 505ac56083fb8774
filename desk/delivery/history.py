"""The day so far as the log tells it: where every van is, what has been ordered, made, failed, asked for. Pure.

The simulator keeps nothing else, so a new one knows exactly what the killed one knew.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from desk.delivery.driving import Van
from desk.delivery.incidents import HALTING

Event = Mapping[str, Any]


class History:
    """A fold of fleet.events, of those that are the desk's. The same event twice counts once."""

    def __init__(self) -> None:
        self.minute = 0.0
        self.vans: dict[str, Van] = {}
        self.ordered: set[str] = set()
        self.returned: set[str] = set()
        self.made: dict[str, list[str]] = defaultdict(list)
        self.missed: dict[str, list[str]] = defaultdict(list)
        """Stops by van, in the order of the day: delivered, and failed once each time."""
        self.attempts: Counter[str] = Counter()
        """Failed attempts by stop."""
        self.incidents: dict[str, Event] = {}
        self.played: set[int] = set()
        """Which of the planned incidents have been played."""
        self.halts: dict[str, dict[str, str]] = defaultdict(dict)
        """By van: incident -> why, for what must stop it and has not yet."""
        self.bad_luck: dict[str, list[str]] = defaultdict(list)
        """By van: incidents that will make its next drop fail."""
        self.overbilled: dict[str, str] = {}
        """Incident -> van, for bills that will be wrong."""
        self.wishes: dict[str, Event] = {}
        """What people asked for and got no answer to yet."""
        self.begun: set[str] = set()
        """Wishes whose incident has begun."""
        self.due: set[str] = set()
        """Problems and orders on the log that are neither closed nor waiting for a person."""
        self.over = False
        self.billed = False
        self._seen: set[str] = set()
        self._settled: set[str] = set()

    def note(self, event: Event) -> None:
        """Take in one event."""
        if event["id"] in self._seen:
            return
        self._seen.add(event["id"])
        if event["agent"] == "simulator" and "minute" in event:
            self.minute = max(self.minute, event["minute"])
        if "after" in event:
            self.vans[event["van"]] = Van.from_json(event["after"])
        take = getattr(self, f"_on_{event['kind']}", None)
        if take:
            take(event)

    def driving(self) -> list[str]:
        """The vans on the road: also those that stand still, but not parked ones."""
        return [name for name, van in self.vans.items() if van.doing != "parked"]

    def leaving(self) -> list[str]:
        """The vans among them that somebody has taken off the road and that have yet to hand over."""
        return [
            name
            for name in self.driving()
            if any(
                i in self.incidents and self.incidents[i]["state"] == "removed"
                for i in (*self.halts[name], *self.vans[name].incidents)
            )
        ]

    def _on_order(self, event: Event) -> None:
        self.ordered.add(event["stop"])
        self._begin(event)

    def _on_delivered(self, event: Event) -> None:
        self.made[event["van"]].append(event["stop"])

    def _on_returned(self, event: Event) -> None:
        self.returned.add(event["stop"])

    def _on_failed(self, event: Event) -> None:
        self.attempts[event["stop"]] += 1
        self.missed[event["van"]].append(event["stop"])
        self._has_come(event)
        self._begin(event)

    def _on_stopped(self, event: Event) -> None:
        self._has_come(event)
        self._begin(event)

    def _on_moot(self, event: Event) -> None:
        self._has_come(event)

    def _on_incident(self, event: Event) -> None:
        incident, what, van = event["incident"], event["state"], event.get("van", "")
        self.incidents[incident] = event
        if "wish" in event:
            self.begun.add(event["wish"])
        if "planned" in event:
            self.played.add(event["planned"])
        if what in HALTING:
            self.halts[van][incident] = what
        elif what == "nobody_home":
            self.bad_luck[van].append(incident)
        elif what == "overbilled":
            self.overbilled[incident] = van

    def _on_wanted(self, event: Event) -> None:
        self.wishes[event["id"]] = event

    def _on_granted(self, event: Event) -> None:
        self.wishes.pop(event["wish"], None)

    def _on_closed(self, event: Event) -> None:
        self._settle(event)

    def _on_parked(self, event: Event) -> None:
        self._settle(event)

    def _on_day_over(self, event: Event) -> None:
        self.over = True

    def _on_bill(self, event: Event) -> None:
        self.billed = True

    def _has_come(self, event: Event) -> None:
        """What was to happen to this van has, or never will; it may be that nobody ever said that it was to."""
        van, incident = event["van"], event["incident"]
        self.halts[van].pop(incident, None)
        if incident in self.bad_luck[van]:
            self.bad_luck[van].remove(incident)

    def _begin(self, event: Event) -> None:
        if event["incident"] not in self._settled:
            self.due.add(event["incident"])

    def _settle(self, event: Event) -> None:
        self._settled.add(event["incident"])
        self.due.discard(event["incident"])
