"""Routing: assess an exception, replan the rounds, give a new order to a van. Two copies share the work.

Killed anywhere, the next process finds the saved plan and applies it; applied twice is the same as once.
"""

import asyncio
import json
from typing import Any

import laser_sdk as ls

from desk.delivery import messages, plans
from desk.delivery.exceptions import ROUTING, DeliveryException
from desk.delivery.fleet import ROSTER, Fleet, body_of, exception_of
from desk.delivery.layout import INBOX, LANE, LANES
from desk.delivery.planning import changes
from desk.delivery.planning.round import Round, arrivals
from desk.delivery.roads import load_legs
from desk.runtime.process import Process
from desk.runtime.saved import compare_and_swap, first, first_and_whose, get_json


class Routing:
    """One copy of routing."""

    def __init__(self, fleet: Fleet) -> None:
        self.f = fleet
        self.metres = load_legs().metres

    async def handle(self, ctx: ls.AgentCtx, message: ls.AgentMessage) -> None:
        """Do the step this message asks for, unless its result is saved; answer with the saved result."""
        body = body_of(message)
        exc, step = exception_of(body), body["step"]
        done = await get_json(self.f.results, f"{exc.id}:{step}")
        if done is None:
            await self.f.event("start", van=exc.van, incident=exc.id, step=step, text=f"{step} of {exc.id}")
            work = {"assess": self.assess, "replan": self.replan, "assign": self.replan}[step]
            done = await first(self.f.results, f"{exc.id}:{step}", await work(exc, step))
        await self.f.event_once("step", exc.id, step, van=done["van"], state="done", text=done["text"])
        await ctx.respond(json.dumps(done))

    async def assess(self, exc: DeliveryException, step: str) -> dict[str, Any]:
        """One line that says what has happened."""
        rounds = await self.f.all_rounds()
        draft = messages.summary(exc, len(rounds[exc.van].drops), self.f.places)
        text = await self.f.write(draft)
        return {"van": exc.van, "text": " ".join(text.text.split()), "by": text.by}

    async def replan(self, exc: DeliveryException, step: str) -> dict[str, Any]:
        """Work out the new rounds, save them, then apply them."""
        f, van = self.f, exc.van
        plan_key = f"{exc.id}:plan"
        saved, mine = await get_json(f.results, plan_key), False
        if saved is None:
            # The other copy may save one meanwhile: then that is the plan, and the pause is not ours.
            saved, mine = await first_and_whose(f.results, plan_key, await self.work_out(exc))
        if mine:
            await f.event("checkpoint", van=van, incident=exc.id, step=step,
                          text="new rounds saved to KV before applying them")  # fmt: skip
            await self.hold(exc, step)
        else:
            await f.event("replay", van=van, incident=exc.id, step=step,
                          text="found the saved plan, applying it")  # fmt: skip
        if saved["do"] == "park" and not await self.may_leave(exc):
            saved = plans.staying(exc)
        changed = await self.apply(exc, saved)
        return {"van": changed.van, "text": saved["text"], "arrivals": await self.affected(exc, changed)}

    async def work_out(self, exc: DeliveryException) -> plans.Plan:
        """What to do, decided from the rounds as they are now."""
        return plans.work_out(exc, await self.f.all_rounds(), self.f.places, self.metres)

    async def hold(self, exc: DeliveryException, step: str) -> None:
        """Wait DESK_STEP_PAUSE seconds, so that a person can press Kill."""
        pause = self.f.me.settings.step_pause
        if pause:
            text = f"holding {pause:g}s before committing: kill {self.f.name} now"
            await self.f.event("holding", van=exc.van, incident=exc.id, step=step, text=text)
            await asyncio.sleep(pause)

    async def apply(self, exc: DeliveryException, plan: plans.Plan) -> Round:
        """Change the rounds as planned, each inside one compare-and-swap. Returns the round that has the drops now."""
        own = None
        if exc.van:
            own = await self.change(exc.van, lambda r: plans.applied(r, exc, plan, self.metres))
        return await self.give(exc, plan["to"], own) if "to" in plan else own

    async def give(self, exc: DeliveryException, to: str, own: Round | None) -> Round:
        """Give the new or handed-over drops to the planned van, or to another when it was parked meanwhile."""
        drops, turn = own.handed if own else (), 0
        to = to or await self.another(exc, own, turn)
        while True:
            taken = await self.change(to, lambda r: plans.taken(r, exc, drops, self.metres))
            if exc.id in taken.applied:
                return taken
            turn += 1
            to = await self.another(exc, own, turn)

    async def another(self, exc: DeliveryException, stopped: Round | None, turn: int) -> str:
        """A van for what the planned one could not take: the same one for whoever asks."""
        rounds = (await self.f.all_rounds()).values()
        if stopped:
            choice = changes.taker(stopped, rounds, self.metres)
        else:
            choice = changes.best_van(rounds, exc.stop, self.metres).van
        return await first(self.f.results, f"{exc.id}:taker-{turn}", choice)

    async def may_leave(self, exc: DeliveryException) -> bool:
        """Take the van off the roster, unless it is the last one on it."""
        roster = await compare_and_swap(self.f.cursors, ROSTER, lambda roster: plans.leaving(roster, exc))
        return roster["left"][exc.id]

    async def change(self, van: str, change: Any) -> Round:
        """Compare-and-swap one van's round. Whoever else writes it at the same time, both changes stay."""

        def swap(value: dict[str, Any]) -> dict[str, Any] | None:
            new = change(Round.from_json(value))
            return None if new is None else new.to_json()

        return Round.from_json(await compare_and_swap(self.f.rounds, van, swap))

    async def affected(self, exc: DeliveryException, changed: Round) -> dict[str, float | None]:
        """Who is to be told, by stop: the minute to expect the van, or None when it will not come again."""
        expected = arrivals(changed, await self.f.minute(), self.metres)
        if exc.kind == "missed" and exc.stop in changed.handed:
            return {}  # it is on another van by now, and its customer is told with that
        if exc.kind in ("missed", "order"):
            return {exc.stop: expected.get(exc.stop)}
        if exc.kind == "closure":
            return expected
        gave_up = Round.from_json(await get_json(self.f.rounds, exc.van)).handed
        return {stop: minute for stop, minute in expected.items() if stop in gave_up}


async def main(me: Process) -> None:
    fleet = Fleet(me)
    await me.laser.topic(INBOX).ensure(LANES)
    await fleet.up()
    await me.serve(
        INBOX,
        Routing(fleet).handle,
        respond_on=LANE,
        capabilities=list(ROUTING),
        max_partitions=LANES,
        retry_max_attempts=3,
        retry_base_delay_ms=100,
        poll_interval_ms=10,
        dead_letter=fleet.lost,
    )
