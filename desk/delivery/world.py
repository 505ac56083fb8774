"""What the parts of the simulator share: the day as the log tells it, and how anything gets onto the log.

KV comes first, then the event: until the event is there, a process that replaces this one does the same again, and
again is the same as once.
"""

import math
from collections.abc import Callable
from typing import Any

from desk.delivery import driving
from desk.delivery.driving import Van
from desk.delivery.fleet import CLOCK, Fleet
from desk.delivery.history import History
from desk.delivery.incidents import TITLES
from desk.delivery.layout import EVENTS, POSITIONS
from desk.delivery.ours import event
from desk.delivery.planning.round import Round
from desk.delivery.roads import Roads, load_legs
from desk.runtime.saved import compare_and_swap, put_json


class World:
    """One day's log, rounds and position reports."""

    def __init__(self, fleet: Fleet) -> None:
        self.f = fleet
        told = fleet.me.switches.get("speed")
        self.speed = (fleet.me.settings.having(speed=told) if told else fleet.me.settings).speed
        self.watched = not math.isinf(self.speed)
        self.places = fleet.places
        self.metres = load_legs().metres
        self.roads = Roads()
        self.history = History()
        self.log = fleet.laser.topic(EVENTS).replay()
        self.positions = fleet.laser.topic(POSITIONS)
        self.waiting: list[dict[str, Any]] = []
        """Position reports that are not sent yet."""

    async def read(self) -> None:
        """Take in what is new on the log, its own events included: there is no other way to know."""
        while messages := await self.log.poll():
            for message in messages:
                said = event(message)
                if said is not None:
                    self.history.note(said)

    async def say(self, kind: str, minute: float, key: str, **fields: Any) -> None:
        """Write an event. `key` is what it is about, once a day. The agents can read the minute before they see it."""
        await self.set_clock(minute)
        await self.f.event(kind, minute=round(minute, 6), key=f"{self.f.day}:{kind}:{key}", **fields)
        await self.read()

    async def moves(self, kind: str, van: Van, minute: float, text: str, **fields: Any) -> None:
        """An event after which a van does something else."""
        key = f"{van.name}:{minute:.6f}:{van.doing}:{van.to}:{len(van.incidents)}"
        await self.say(kind, minute, key, van=van.name, after=van.to_json(), text=text, **fields)

    async def change(self, van: str, change: Callable[[Round], Round]) -> Round:
        """Compare-and-swap a round; nothing is written when nothing changes."""

        def swap(value: dict[str, Any]) -> dict[str, Any] | None:
            before = Round.from_json(value)
            after = change(before)
            return None if after == before else after.to_json()

        return Round.from_json(await compare_and_swap(self.f.rounds, van, swap))

    async def drop_incidents(self, van: str, why: str) -> None:
        """What was to happen to this van and cannot any more."""
        for incident in (*self.history.halts[van], *self.history.bad_luck[van]):
            await self.moot(van, incident, why)

    async def moot(self, van: str, incident: str, why: str) -> None:
        """An incident that changes nothing."""
        title = TITLES[self.history.incidents[incident]["state"]]
        text = f"{van} {why}: {title} changes nothing"
        await self.say("moot", self.history.minute, incident, van=van, incident=incident, text=text)

    async def set_clock(self, minute: float) -> None:
        """Let the agents know what time it is."""
        await put_json(self.f.cursors, CLOCK, round(minute, 6))

    async def note_stop(self, stop: str, state: str, van: str) -> None:
        """What became of a stop's parcel so far."""
        await put_json(self.f.stops, stop, {"state": state, "van": van})

    def position(self, van: Van, minute: float) -> dict[str, Any]:
        """One position report; an incident is named by the van that stands still for it."""
        start, end, share = driving.where(van, minute, self.metres)
        place = self.places[start]
        lon, lat = self.roads.point(start, end, share) if end != start else (place.lon, place.lat)
        odometer = round(driving.odometer(van, minute, self.metres), 1)
        return {"minute": round(minute, 6), "van": van.name, "status": van.doing, "metres": float(odometer),
                "lon": round(lon, 6), "lat": round(lat, 6), "at": van.at, "stop": van.to}  # fmt: skip

    async def flush(self) -> None:
        """Send the position reports that are waiting."""
        if self.waiting:
            batch = self.positions.publish_batch()
            for record in self.waiting:
                batch = batch.add_json(record)
            self.waiting = []
            await batch.send()
