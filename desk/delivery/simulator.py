"""The simulator: drives the vans, makes the drops, plays the incidents, and writes everything it does to the log.

It is the world, not an agent. What it knows is a fold of the log, so one that was killed is replaced by one that
knows the same. KV comes first, then the event: until the event is there, a new process does the same again, and
again is the same as once.

Watched, the clock runs at DESK_SPEED. Unwatched (max) it stands still until the work due at this instant is done,
so the same seed and the same incidents give the same day, whoever was killed in it.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from desk.delivery import clock, driving
from desk.delivery.carrier import Work, bill_for, overbilled
from desk.delivery.customer import SMS
from desk.delivery.driving import Van
from desk.delivery.fleet import CLOCK, ROSTER, Fleet
from desk.delivery.history import History
from desk.delivery.incidents import TITLES, busiest, from_text, orders, vans_to_change
from desk.delivery.layout import EVENTS, POSITIONS
from desk.delivery.planning import progress
from desk.delivery.planning.round import DEPOT, Round
from desk.delivery.planning.start import start_rounds
from desk.delivery.plans import joining
from desk.delivery.rates import Rates
from desk.delivery.roads import Roads, load_legs
from desk.runtime.process import Process
from desk.runtime.saved import compare_and_swap, first, put_json

MOMENT = 0.1  # seconds: how soon a watched simulator notices what people want
LOOK = 0.02  # seconds between two looks at the log while waiting
BEHIND = 2.0  # seconds a watched clock may lag before it gives up catching up
BUFFER = 400  # position reports sent at once when nobody watches


@dataclass(frozen=True)
class Next:
    """Something that will happen: when, what sorts first at the same minute, and how."""

    minute: float
    rank: int
    name: str
    happen: Callable[[float], Coroutine[Any, Any, None]]


class Simulator:
    """One day."""

    def __init__(self, fleet: Fleet) -> None:
        self.f, settings, switches = fleet, fleet.me.settings, fleet.me.switches
        self.speed, self.watched = settings.speed, not math.isinf(settings.speed)
        self.metres = load_legs().metres
        self.roads = Roads()
        self.planned = from_text(switches.get("incidents"))
        self.history = History()
        self.log = fleet.laser.topic(EVENTS).replay()
        self.positions = fleet.laser.topic(POSITIONS)
        self.buffer: list[dict[str, Any]] = []
        self.tick = 0
        points = {p.id: (p.lon, p.lat) for p in fleet.places.values()}
        depot = points.pop(DEPOT)
        vans = [f"van-{n}" for n in range(1, int(switches.get("vans") or 4) + 1)]
        self.first_rounds, others = start_rounds(depot, points, vans, self.metres)
        self.orders = orders(settings.seed, others, int(switches.get("orders") or 12))

    # -- the log and the rounds

    async def read(self) -> None:
        """Take in what is new on the log, its own events included: there is no other way to know."""
        while messages := await self.log.poll():
            for message in messages:
                self.history.note(message.json())

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

    # -- the day

    async def begin(self) -> None:
        """Read what has happened; put the first rounds in place unless they are."""
        await self.read()
        reported = await self.positions.replay().poll()
        last = max((message.json()["minute"] for message in reported), default=0.0)
        self.history.minute = max(self.history.minute, last)
        self.tick = math.ceil(round(self.history.minute / clock.TICK, 6))
        await first(self.f.cursors, ROSTER, {"driving": list(self.first_rounds), "left": {}})
        for van, round_ in self.first_rounds.items():
            await first(self.f.rounds, van, round_.to_json())
            if van not in self.history.vans:
                for stop in round_.drops:
                    await self.note_stop(stop, "planned", van)
                await self.moves("joined", Van(van), 0.0, f"{van} starts with {len(round_.drops)} drops")
        self.started = time.monotonic(), self.history.minute

    async def live(self) -> None:
        """Let things happen one after another until the day is over."""
        quiet = False
        while not self.history.over:
            if self.watched or not quiet:
                await self.grant()
                await self.settle()
                if self.history.due and not self.watched:
                    await self.flush()
                    await asyncio.sleep(LOOK)
                    await self.read()
                    continue
                if await self.is_over():
                    await self.end()
                    return
            upcoming = min(self.upcoming(), key=lambda n: (n.minute, n.rank, n.name))
            if self.watched and not await self.time_for(upcoming.minute):
                continue
            quiet = upcoming.happen == self.report
            await upcoming.happen(max(upcoming.minute, self.history.minute))

    def upcoming(self) -> list[Next]:
        """What will happen by itself."""
        found = [Next(self.tick * clock.TICK, 3, "", self.report)]
        for van in self.history.vans.values():
            when = driving.due(van, self.metres)
            if when < math.inf:
                happen = self.arrive if van.doing == "driving" else self.finish
                found.append(Next(when, 0, van.name, lambda m, h=happen, v=van: h(v, m)))
        for minute, stop in self.orders:
            if stop not in self.history.ordered:
                found.append(Next(minute, 1, stop, lambda m, s=stop: self.order(s, m)))
        for number, planned in enumerate(self.planned):
            if number not in self.history.played:
                play = {"planned": number, "van": planned.van}
                found.append(Next(planned.minute, 2, str(number),
                                  lambda m, p=planned, f=play: self.play(p.what, m, **f)))  # fmt: skip
        return found

    async def time_for(self, minute: float) -> bool:
        """Let real time pass, a moment of it. Whether it is this minute now."""
        wall, then = self.started
        ahead = wall + clock.real_seconds((minute - then) / clock.TICK, self.speed) - time.monotonic()
        if ahead > 0:
            await asyncio.sleep(min(ahead, MOMENT))
        elif ahead < -BEHIND:  # the stack was away: go on from here, no van jumps
            self.started = time.monotonic(), minute
        await self.read()
        passed = (time.monotonic() - self.started[0]) * self.speed / clock.TICK_SECONDS * clock.TICK
        self.history.minute = max(self.history.minute, min(minute, self.started[1] + passed))
        return ahead <= MOMENT

    async def is_over(self) -> bool:
        """Whether every van is home or parked and nothing is left to come."""
        left = [stop for _, stop in self.orders if stop not in self.history.ordered]
        if left or len(self.history.played) < len(self.planned) or self.history.due or self.history.wishes:
            return False
        home = all(
            v.doing == "parked" or (v.doing == "idle" and v.at == DEPOT) for v in self.history.vans.values()
        )
        return home and not any(r.drops or r.retry for r in (await self.f.all_rounds()).values())

    async def end(self) -> None:
        """The last reports, what is left on parked vans, and the end of the day."""
        minute = self.history.minute
        for van, round_ in sorted((await self.f.all_rounds()).items()):
            for stop in round_.back:
                await self.bring_back(van, stop, minute)
            await self.drop_incidents(van, "makes no drop any more")
        await self.report(minute)
        await self.flush()
        await self.say("day_over", minute, "", text=f"all vans are in at {clock.time_of_day(minute)}")

    # -- what happens by itself

    async def arrive(self, van: Van, minute: float) -> None:
        """A van reaches the place it drove to."""
        round_ = await self.change(van.name, lambda r: progress.reached(r, van.to))
        there = driving.arrived(van, minute, self.metres, to_a_drop=round_.serving)
        await self.moves(
            "arrived", there, minute, f"{van.name} is at {self.f.places[van.to].name}", stop=van.to
        )

    async def finish(self, van: Van, minute: float) -> None:
        """A drop has been made, or nobody was home."""
        stop, after, name = van.at, driving.finished(van, minute), self.f.places[van.at].name
        if luck := self.history.bad_luck[van.name]:
            attempt = self.history.attempts[stop] + 1
            await self.note_stop(stop, "failed", van.name)
            await self.change(van.name, lambda r: progress.failed(r, stop))
            await self.moves("failed", after, minute, f"nobody home at {name}", stop=stop,
                             incident=luck[0], attempt=attempt, state=f"attempt {attempt}")  # fmt: skip
        else:
            await self.note_stop(stop, "delivered", van.name)
            await self.change(van.name, lambda r: progress.delivered(r, stop))
            await self.moves("delivered", after, minute, f"delivered to {name}", stop=stop)

    async def order(self, stop: str, minute: float) -> None:
        """A customer orders."""
        await self.note_stop(stop, "ordered", "")
        text = f"{self.f.places[stop].name} in {self.f.places[stop].suburb} orders"
        await self.say("order", minute, stop, stop=stop, incident=f"{self.f.day}-{stop}", text=text)

    async def report(self, minute: float) -> None:
        """Where every van is: one record a van and tick."""
        self.buffer += [self.position(van, minute) for van in self.history.vans.values()]
        self.tick = max(self.tick, round(minute / clock.TICK)) + 1
        self.history.minute = max(self.history.minute, minute)
        if self.watched:
            await self.set_clock(minute)
        if self.watched or len(self.buffer) >= BUFFER:
            await self.flush()

    def position(self, van: Van, minute: float) -> dict[str, Any]:
        """One position report; an incident is named by the van that stands still for it."""
        start, end, share = driving.where(van, minute, self.metres)
        place = self.f.places[start]
        lon, lat = self.roads.point(start, end, share) if end != start else (place.lon, place.lat)
        odometer = round(driving.odometer(van, minute, self.metres), 1)
        return {"minute": round(minute, 6), "van": van.name, "status": van.doing, "metres": float(odometer),
                "lon": round(lon, 6), "lat": round(lat, 6), "at": van.at, "stop": van.to}  # fmt: skip

    async def flush(self) -> None:
        """Send the position reports that are waiting."""
        if self.buffer:
            batch = self.positions.publish_batch()
            for record in self.buffer:
                batch = batch.add_json(record)
            self.buffer = []
            await batch.send()

    # -- what a van does next

    async def settle(self) -> None:
        """Let every van go on, turn, stop, park or drive home, as its round and its incidents want it."""
        rounds = await self.f.all_rounds()
        for name in sorted(self.history.vans):
            await self.settle_one(name, rounds[name])

    async def settle_one(self, name: str, round_: Round) -> None:
        van, minute = self.history.vans[name], self.history.minute
        if van.doing == "making":
            return
        if van.doing == "parked":
            await self.drop_incidents(name, "is parked")
            return
        if van.doing == "stopped" and set(van.incidents) <= set(round_.applied):
            if round_.parked:
                await self.moves("van_parked", driving.parked(van, minute), minute, f"{name} is off the road")
                return
            van = driving.freed(van, minute)
        for incident, why in list(self.history.halts[name].items()):
            van = await self.halt(van, round_, why, incident)
        if van.doing == "stopped":
            return
        await self.go_on(van, round_)

    async def go_on(self, van: Van, round_: Round) -> None:
        """Drive to the first drop of the round, or home."""
        minute = self.history.minute
        if (
            van.doing == "driving"
            and van.to == (round_.heading or DEPOT)
            and (round_.heading or not round_.drops)
        ):
            return
        if round_.drops:
            round_ = await self.change(van.name, progress.claimed)
        to = round_.heading or DEPOT
        if to == DEPOT and round_.retry:
            return  # a parcel on board is about to be planned again
        if van.doing == "driving" or van.at != to or van.back:
            text = f"{van.name} drives to {self.f.places[to].name}"
            await self.moves(
                "departed", driving.departed(van, to, minute, self.metres), minute, text, stop=to
            )
        elif to == DEPOT:
            for stop in round_.back:
                await self.bring_back(van.name, stop, minute)
            if van != self.history.vans[van.name]:  # it stood still until now
                await self.moves("waiting", van, minute, f"{van.name} waits at the depot")

    async def halt(self, van: Van, round_: Round, why: str, incident: str) -> Van:
        """Stop a van, unless there is nothing to stop it for. Returns what it does now."""
        minute = self.history.minute
        blocked = round_.heading or (round_.drops[0] if round_.drops else "")
        if why == "closure" and not blocked:
            await self.moot(van.name, incident, "has no drop left to reach")
            return van
        van = driving.stopped(van, why, incident, minute, self.metres)
        stop = blocked if why == "closure" else ""
        text = f"{van.name} has stopped: {TITLES[why]}"
        await self.moves("stopped", van, minute, text, incident=incident, stop=stop, why=why, state=why)
        self.buffer.append({**self.position(van, minute), "incident": incident, "why": why, "stop": stop})
        await self.flush()
        return van

    async def bring_back(self, van: str, stop: str, minute: float) -> None:
        """A parcel that failed twice is at the depot again."""
        text = f"the parcel for {self.f.places[stop].name} is back at the depot after two attempts"
        if stop not in self.history.returned:
            await self.say("returned", minute, stop, van=van, stop=stop, text=text)
        await self.note_stop(stop, "returned", van)
        await self.change(van, progress.home)

    # -- incidents and wishes

    async def play(self, what: str, minute: float, van: str = "", **fields: Any) -> None:
        """Begin an incident. What cannot come about is said in an event of its own."""
        number = f"{self.f.day}-{len(self.history.incidents) + 1}"
        van = van or (busiest((await self.f.all_rounds()).values()) if what != "sms_down" else "")
        text = TITLES[what] + (f": {van}" if van else "")
        if what == "sms_down":
            fault = {"incident": number, "down": True}
            await compare_and_swap(
                self.f.faults, SMS, lambda now: None if now and now["incident"] == number else fault
            )
        await self.say("incident", minute, number, incident=number, state=what, van=van, text=text, **fields)

    async def drop_incidents(self, van: str, why: str) -> None:
        for incident in (*self.history.halts[van], *self.history.bad_luck[van]):
            await self.moot(van, incident, why)

    async def moot(self, van: str, incident: str, why: str) -> None:
        """An incident that changes nothing."""
        title = TITLES[self.history.incidents[incident]["state"]]
        text = f"{van} {why}: {title} changes nothing"
        await self.say("moot", self.history.minute, incident, van=van, incident=incident, text=text)

    async def grant(self) -> None:
        """Do what people asked for since."""
        for wish, asked in list(self.history.wishes.items()):
            if self.history.over:
                text = "the day is over"
            elif asked["what"] == "vans":
                text = await self.set_vans(int(asked["count"]))
            else:
                await self.play(asked["what"], self.history.minute, van=asked.get("van", ""), wish=wish)
                text = TITLES[asked["what"]]
            await self.say("granted", self.history.minute, wish, wish=wish, text=text, by=asked.get("by"))

    async def set_vans(self, wanted: int) -> str:
        """Take vans off the road or put them on it. Returns what was done, in a sentence."""
        minute, rounds = self.history.minute, await self.f.all_rounds()
        off, on = vans_to_change(max(wanted, 1), rounds)
        for van in off:
            if "removed" not in self.history.halts[van].values() and self.history.vans[van].why != "removed":
                await self.play("removed", minute, van=van)
        for van in on:
            await first(self.f.rounds, van, Round(van).to_json())
            await self.change(van, progress.on_the_road)
            await compare_and_swap(self.f.cursors, ROSTER, lambda roster, v=van: joining(roster, v))
            known = self.history.vans.get(van, Van(van, since=minute))
            await self.moves("joined", driving.freed(known, minute), minute, f"{van} is on the road")
        if wanted < 1:
            return "the last driving van cannot be parked"
        return f"{wanted} vans on the road"

    # -- the bill

    async def bill(self) -> None:
        """The carrier bills the day."""
        minute, history, rates = self.history.minute, self.history, Rates()
        made, missed = history.made, history.missed
        work = {
            van.name: Work(made[van.name], missed[van.name], round(van.metres, 1))
            for van in history.vans.values()
        }
        bill = bill_for(self.f.day, work, rates)
        for van in history.overbilled.values():
            bill = overbilled(bill, van or max(work, key=lambda v: len(work[v].delivered)), rates)
        incident = f"{self.f.day}-bill"
        stored = await first(self.f.results, f"{incident}:bill", bill.to_json())
        text = f"the carrier bills {len(stored['lines'])} lines"
        await self.say(
            "bill", minute, "", incident=incident, bill=stored, state=str(stored["total"]), text=text
        )

    # -- odds and ends

    async def set_clock(self, minute: float) -> None:
        await put_json(self.f.cursors, CLOCK, round(minute, 6))

    async def note_stop(self, stop: str, state: str, van: str) -> None:
        await put_json(self.f.stops, stop, {"state": state, "van": van})


async def main(me: Process) -> None:
    simulator = Simulator(Fleet(me))
    await simulator.begin()
    await me.up()
    await simulator.live()
    if not simulator.history.billed:
        await simulator.bill()
    while True:  # the day is over; who still asks for something is told so
        await simulator.read()
        await simulator.grant()
        await asyncio.sleep(1.0)
