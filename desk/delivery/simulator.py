"""The simulator: drives the vans, makes the drops, plays the incidents, and writes everything it does to the log.

It is the world, not an agent. What it knows is a fold of the log, so one that was killed is replaced by one that
knows the same.

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
from desk.delivery.driving import Van
from desk.delivery.fleet import ROSTER, Fleet
from desk.delivery.incidents import ORDERS, from_text, orders
from desk.delivery.ours import report
from desk.delivery.planning.round import DEPOT
from desk.delivery.planning.start import start_rounds
from desk.delivery.playing import Playing
from desk.delivery.vans import Vans
from desk.delivery.world import World
from desk.runtime.process import Process
from desk.runtime.saved import first
from desk.wording import counted

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
        settings, switches = fleet.me.settings, fleet.me.switches
        self.f, self.w = fleet, World(fleet)
        self.history = self.w.history
        self.vans, self.playing = Vans(self.w), Playing(self.w)
        self.speed, self.watched = self.w.speed, self.w.watched
        self.planned = from_text(switches.get("incidents"))
        self.tick = 0
        points = {p.id: (p.lon, p.lat) for p in fleet.places.values()}
        depot = points.pop(DEPOT)
        vans = [f"van-{n}" for n in range(1, int(switches.get("vans") or 4) + 1)]
        self.first_rounds, others = start_rounds(depot, points, vans, self.w.metres)
        self.orders = orders(settings.seed, others, int(switches.get("orders") or ORDERS))

    # -- the day

    async def begin(self) -> None:
        """Read what has happened; put the first rounds in place unless they are."""
        await self.w.read()
        reports = self.w.positions.replay()
        while messages := await reports.poll():
            minutes = [said["minute"] for message in messages if (said := report(message))]
            self.history.minute = max([self.history.minute, *minutes])
        self.tick = math.ceil(round(self.history.minute / clock.TICK, 6))
        await first(self.f.cursors, ROSTER, {"driving": list(self.first_rounds), "left": {}})
        for van, round_ in self.first_rounds.items():
            await first(self.f.rounds, van, round_.to_json())
            if van not in self.history.vans:
                for stop in round_.drops:
                    await self.w.note_stop(stop, "planned", van)
                await self.w.moves(
                    "joined", Van(van), 0.0, f"{van} starts with {counted(len(round_.drops), 'drop')}"
                )
        self.started = time.monotonic(), self.history.minute

    async def live(self) -> None:
        """Let things happen one after another until the day is over."""
        quiet = False
        while not self.history.over:
            if self.watched or not quiet:
                await self.playing.grant()
                await self.vans.settle()
                if self.history.due and not self.watched:
                    await self.w.flush()
                    await asyncio.sleep(LOOK)
                    await self.w.read()
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
            when = driving.due(van, self.w.metres)
            if when < math.inf:
                happen = self.vans.arrive if van.doing == "driving" else self.vans.finish
                found.append(Next(when, 0, van.name, lambda m, h=happen, v=van: h(v, m)))
        for minute, stop in self.orders:
            if stop not in self.history.ordered:
                found.append(Next(minute, 1, stop, lambda m, s=stop: self.playing.order(s, m)))
        for number, planned in enumerate(self.planned):
            if number not in self.history.played:
                play = {"planned": number, "van": planned.van}
                found.append(Next(planned.minute, 2, str(number),
                                  lambda m, p=planned, f=play: self.playing.play(p.what, m, **f)))  # fmt: skip
        return found

    async def time_for(self, minute: float) -> bool:
        """Let real time pass, a moment of it. Whether it is this minute now."""
        wall, then = self.started
        ahead = wall + clock.real_seconds((minute - then) / clock.TICK, self.speed) - time.monotonic()
        if ahead > 0:
            await asyncio.sleep(min(ahead, MOMENT))
        elif ahead < -BEHIND:  # the stack was away: go on from here, no van jumps
            self.started = time.monotonic(), minute
        await self.w.read()
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
                await self.vans.bring_back(van, stop, minute)
            await self.w.drop_incidents(van, "makes no drop any more")
        await self.report(minute)
        await self.w.flush()
        await self.w.say("day_over", minute, "", text=f"all vans are in at {clock.time_of_day(minute)}")

    async def report(self, minute: float) -> None:
        """Where every van is: one record a van and tick."""
        self.w.waiting += [self.w.position(van, minute) for van in self.history.vans.values()]
        self.tick = max(self.tick, round(minute / clock.TICK)) + 1
        self.history.minute = max(self.history.minute, minute)
        if self.watched:
            await self.w.set_clock(minute)
        if self.watched or len(self.w.waiting) >= BUFFER:
            await self.w.flush()


async def main(me: Process) -> None:
    simulator = Simulator(Fleet(me))
    await simulator.begin()
    await me.up()
    await simulator.live()
    if not simulator.history.billed:
        await simulator.playing.bill()
    while True:  # the day is over; who still asks for something is told so
        await simulator.w.read()
        await simulator.playing.grant()
        await asyncio.sleep(1.0)
