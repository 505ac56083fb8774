"""Playing the incidents, granting what people ask for, and the carrier's bill: the parts of a day that are not driving."""

from typing import Any

from desk.delivery import driving
from desk.delivery.carrier import Work, bill_for, overbilled
from desk.delivery.customer import SMS
from desk.delivery.driving import Van
from desk.delivery.fleet import ROSTER
from desk.delivery.incidents import TITLES, busiest, vans_to_change
from desk.delivery.planning import progress
from desk.delivery.planning.round import Round
from desk.delivery.plans import joining
from desk.delivery.rates import Rates
from desk.delivery.world import World
from desk.runtime.saved import compare_and_swap, first
from desk.wording import counted


class Playing:
    """Incidents, orders, wishes and the bill of one day."""

    def __init__(self, world: World) -> None:
        self.w, self.f, self.history, self.places = world, world.f, world.history, world.places

    async def order(self, stop: str, minute: float) -> None:
        """A customer orders."""
        await self.w.note_stop(stop, "ordered", "")
        text = f"{self.places[stop].name} in {self.places[stop].suburb} orders"
        await self.w.say("order", minute, stop, stop=stop, incident=f"{self.f.day}-{stop}", text=text)

    async def play(self, what: str, minute: float, van: str = "", **fields: Any) -> None:
        """Begin an incident. What cannot come about is said in an event of its own."""
        number = f"{self.f.day}-{len(self.history.incidents) + 1}"
        van = "" if what == "sms_down" else van or busiest((await self.f.all_rounds()).values())
        text = TITLES[what] + (f": {van}" if van else "")
        if what == "sms_down":
            fault = {"incident": number, "down": True}
            await compare_and_swap(
                self.f.faults, SMS, lambda now: None if now and now["incident"] == number else fault
            )
        await self.w.say(
            "incident", minute, number, incident=number, state=what, van=van, text=text, **fields
        )
        if van and what != "overbilled" and van not in self.history.vans:
            await self.w.moot(van, number, "is not on the road")

    async def grant(self) -> None:
        """Do what people asked for since."""
        for wish, asked in list(self.history.wishes.items()):
            if self.history.over:
                text = "the day is over"
            elif asked["what"] == "vans":
                text = await self.set_vans(int(asked["count"]))
            else:
                if wish not in self.history.begun:
                    await self.play(asked["what"], self.history.minute, van=asked.get("van", ""), wish=wish)
                text = TITLES[asked["what"]]
            await self.w.say("granted", self.history.minute, wish, wish=wish, text=text, by=asked.get("by"))

    async def set_vans(self, wanted: int) -> str:
        """Take vans off the road or put them on it. Returns what was done, in a sentence."""
        minute, here, leaving = self.history.minute, self.history.driving(), self.history.leaving()
        off, on = vans_to_change(wanted, here, leaving)
        for van in off:
            await self.play("removed", minute, van=van)
        for van in on:
            await first(self.f.rounds, van, Round(van).to_json())
            await self.w.change(van, progress.on_the_road)
            await compare_and_swap(self.f.cursors, ROSTER, lambda roster, v=van: joining(roster, v))
            known = self.history.vans.get(van, Van(van, since=minute))
            await self.w.moves("joined", driving.freed(known, minute), minute, f"{van} is on the road")
        now = len(here) - len(leaving) - len(off) + len(on)
        still = "" if now == wanted else f", as {', '.join(sorted(leaving))} must hand over first"
        return f"{counted(now, 'van')} on the road{still}"

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
        text = f"the carrier bills {counted(len(stored['lines']), 'line')}"
        await self.w.say(
            "bill", minute, "", incident=incident, bill=stored, state=str(stored["total"]), text=text
        )
