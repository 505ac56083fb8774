"""What a van does next: drive, make a drop, stop, turn, park, drive home, as its round and its incidents want it."""

from desk.delivery import driving
from desk.delivery.driving import Van
from desk.delivery.incidents import TITLES
from desk.delivery.planning import progress
from desk.delivery.planning.round import DEPOT, Round
from desk.delivery.world import World
from desk.runtime.saved import get_json


class Vans:
    """The vans of one day. Each step is on the log before the next one begins."""

    def __init__(self, world: World) -> None:
        self.w, self.f, self.history, self.places = world, world.f, world.history, world.places
        self.metres = world.metres

    async def arrive(self, van: Van, minute: float) -> None:
        """A van reaches the place it drove to."""
        round_ = await self.w.change(van.name, lambda r: progress.reached(r, van.to))
        there = driving.arrived(van, minute, self.metres, to_a_drop=round_.serving)
        await self.w.moves(
            "arrived", there, minute, f"{van.name} is at {self.places[van.to].name}", stop=van.to
        )

    async def finish(self, van: Van, minute: float) -> None:
        """A drop has been made, or nobody was home."""
        stop, after, name = van.at, driving.finished(van, minute), self.places[van.at].name
        luck = self.history.bad_luck[van.name]
        if luck and not await self.was_made(stop):
            attempt = self.history.attempts[stop] + 1
            await self.w.note_stop(stop, "failed", van.name)
            await self.w.change(van.name, lambda r: progress.failed(r, stop, attempt))
            await self.w.moves("failed", after, minute, f"nobody home at {name}", stop=stop,
                             incident=luck[0], attempt=attempt, state=f"attempt {attempt}")  # fmt: skip
        else:
            await self.w.note_stop(stop, "delivered", van.name)
            await self.w.change(van.name, lambda r: progress.delivered(r, stop))
            await self.w.moves("delivered", after, minute, f"delivered to {name}", stop=stop)

    async def was_made(self, stop: str) -> bool:
        """Whether a simulator made this drop that was killed before it could write so."""
        return (await get_json(self.f.stops, stop))["state"] == "delivered"

    async def settle(self) -> None:
        """Let every van go on, turn, stop, park or drive home, as its round and its incidents want it."""
        rounds = await self.f.all_rounds()
        for name in sorted(self.history.vans):
            await self.settle_one(name, rounds[name])

    async def settle_one(self, name: str, round_: Round) -> None:
        """One van: stay, stop, park, or go on."""
        van, minute = self.history.vans[name], self.history.minute
        if van.doing == "making":
            return
        if van.doing == "parked":
            await self.w.drop_incidents(name, "is parked")
            return
        if van.doing == "stopped" and set(van.incidents) <= set(round_.applied):
            if round_.parked:
                await self.w.moves(
                    "van_parked", driving.parked(van, minute), minute, f"{name} is off the road"
                )
                return
            van = driving.freed(van, minute)
        for incident, why in list(self.history.halts[name].items()):
            if self.history.due and not self.w.watched:
                return  # one problem after another, so that a day can be repeated
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
            round_ = await self.w.change(van.name, progress.claimed)
        to = round_.heading or DEPOT
        if to == DEPOT and round_.retry:
            return  # a parcel on board is about to be planned again
        # Also to a drop it stands at: a plan may put one first that failed there, or that it came to unplanned.
        if to != DEPOT or van.doing == "driving" or van.at != to or van.back:
            text = f"{van.name} drives to {self.places[to].name}"
            await self.w.moves(
                "departed", driving.departed(van, to, minute, self.metres), minute, text, stop=to
            )
        else:
            for stop in round_.back:
                await self.bring_back(van.name, stop, minute)
            if van != self.history.vans[van.name]:  # it stood still until now
                await self.w.moves("waiting", van, minute, f"{van.name} waits at the depot")

    async def halt(self, van: Van, round_: Round, why: str, incident: str) -> Van:
        """Stop a van, unless there is nothing to stop it for. Returns what it does now."""
        minute = self.history.minute
        blocked = round_.heading or (round_.drops[0] if round_.drops else "")
        if why == "closure" and not blocked:
            await self.w.moot(van.name, incident, "has no drop left to reach")
            return van
        van = driving.stopped(van, why, incident, minute, self.metres)
        stop = blocked if why == "closure" else ""
        text = f"{van.name} has stopped: {TITLES[why]}"
        await self.w.moves("stopped", van, minute, text, incident=incident, stop=stop, why=why, state=why)
        self.w.waiting.append(
            {**self.w.position(van, minute), "incident": incident, "why": why, "stop": stop}
        )
        await self.w.flush()
        return van

    async def bring_back(self, van: str, stop: str, minute: float) -> None:
        """A parcel that failed twice is at the depot again."""
        text = f"the parcel for {self.places[stop].name} is back at the depot after two attempts"
        if stop not in self.history.returned:
            await self.w.say("returned", minute, stop, van=van, stop=stop, text=text)
        await self.w.note_stop(stop, "returned", van)
        await self.w.change(van, progress.home)
