"""Invoice: check the carrier's bill against the log, show on a fork what it charges for, ask before disputing."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import laser_sdk as ls

from desk.delivery import readers
from desk.delivery.carrier import Bill
from desk.delivery.exceptions import INVOICE
from desk.delivery.fleet import Fleet, body_of
from desk.delivery.layout import INBOX, LANE, LANES
from desk.delivery.rates import Rates, dollars, kilometres
from desk.delivery.reconcile import Totals, extra, reconcile, to_hold, unexplained
from desk.runtime.process import Process
from desk.runtime.saved import first, get_json
from desk.wording import counted

ANSWER_WITHIN = 600.0  # seconds a person has; the switch `answer_within` overrides it
_FAR = 1_000_000_000  # fork rows go where the real views will never have one: there they would replace it
_LOOK = 0.25  # seconds between two looks for a stored decision
UNREADABLE = 4  # the error code of a bill nobody can check


class Uncheckable(Exception):
    """A bill that cannot be checked, whoever tries again. Its text is a sentence for a person."""


class Invoice:
    """The invoice agent."""

    def __init__(self, fleet: Fleet) -> None:
        self.f = fleet
        self.rates = Rates()

    async def handle(self, ctx: ls.AgentCtx, message: ls.AgentMessage) -> None:
        """Check the bill this contract asks about, unless that is done; answer with the saved check."""
        incident = body_of(message)["incident"]
        done = await get_json(self.f.results, f"{incident}:check")
        if done is None:
            await self.f.event("start", incident=incident, step="invoice-check", text=f"checking {incident}")
            try:
                found = await self.checked(ctx, incident)
            except Uncheckable as error:
                await self.f.event_once("step", incident, "invoice-check", state="refused", text=str(error))
                await self.refuse(ctx, message, str(error))
                return
            done = await first(self.f.results, f"{incident}:check", found)
        else:
            await self.fork(incident).squash()  # a kill may have come between the saved check and the squash
        await self.f.event_once("step", incident, "invoice-check", state="done", text=done["text"])
        await ctx.respond(json.dumps(done))

    async def checked(self, ctx: ls.AgentCtx, incident: str) -> dict[str, Any]:
        """The check of the bill as it was sent. Raises Uncheckable.

        What is first in a view's column says what the column holds. When somebody else's record was, what the desk
        writes there is nothing, and a fork takes no row of ours.
        """
        try:
            bill = Bill.from_json(await get_json(self.f.results, f"{incident}:bill"))
        except ValueError as error:
            raise Uncheckable(f"The bill {incident} cannot be read: {error}.") from None
        try:
            return await self.check(ctx, incident, bill)
        except readers.ViewError as error:
            raise Uncheckable(f"The bill {incident} cannot be checked: {error}") from None
        except ls.ForkError as error:
            if error.code != "InvalidArgument":
                raise
            raise Uncheckable(
                f"The bill {incident} cannot be checked: a view refuses our row ({error})."
            ) from None

    async def check(self, ctx: ls.AgentCtx, incident: str, bill: Bill) -> dict[str, Any]:
        """Reconcile; when something differs, show it on a fork and ask a person."""
        found = reconcile(bill, await readers.work(self.f.laser), self.rates)
        if not found:
            return {
                "outcome": "agrees",
                "hold": 0,
                "text": f"the bill of {dollars(bill.total)} agrees with the log",
            }
        hold = to_hold(found)
        fork = self.fork(incident)
        try:
            match = await self.show(fork, incident, bill)
            prompt = {
                "incident": incident,
                "vans": sorted({d.van for d in found if d.van}),
                "billed": dollars(bill.total),
                "hold": hold,
                "text": f"Dispute {dollars(hold)} of the carrier's bill of {dollars(bill.total)}? "
                + " ".join(d.sentence for d in found) + f" {match}",
                "found": [d.to_json() for d in found],
            }  # fmt: skip
            decision = await self.decide(ctx, incident, prompt)
        finally:
            await fork.squash()
        return {
            "hold": hold if decision["outcome"] == "disputed" else 0,
            "found": prompt["found"],
            **decision,
        }

    async def show(self, fork: ls.ForkHandle, incident: str, bill: Bill) -> str:
        """Put exactly the extra drops and kilometres on a fork and count it as the real views are counted."""
        logged = await self.totals()
        await fork.squash()  # left by a process that was killed; squashing first makes this the same as once
        await fork.create()
        row = _FAR
        for van, more in extra(bill, logged).items():
            for kind, number in (("delivered", more.drops), ("failed", more.failed)):
                for _ in range(number):
                    at = fork.put_row("fleet_events", 0, row)
                    await (
                        at.field("kind", kind).field("van", van).field("stop", f"billed-{row - _FAR}").send()
                    )
                    row += 1
            if more.km:
                top = (await readers.metres(self.f.laser)).get(van, 0.0) + float(more.km) * 1000
                await (
                    fork.put_row("fleet_positions", 0, row).field("van", van).field("metres", str(top)).send()
                )
                row += 1
        gap = unexplained(bill, await self.totals(fork.id), self.rates)
        match = (
            "With that work added the log's totals match the bill."
            if gap == 0
            else f"Even with that work added {dollars(abs(gap))} {'too much' if gap > 0 else 'too little'} is billed."
        )
        await self.f.event("fork", incident=incident, step="invoice-check", state="matches" if gap == 0 else "differs",
                           text=f"{counted(row - _FAR, 'row')} on {fork.id}. {match}")  # fmt: skip
        return match

    async def decide(self, ctx: ls.AgentCtx, incident: str, prompt: dict[str, Any]) -> dict[str, Any]:
        """What a person says, once: stored before it is acted on, so a kill never asks again what was answered."""
        stored = await get_json(self.f.decisions, incident)
        if stored is None:
            await self.f.event(
                "asked", incident=incident, step="invoice-check", hold=prompt["hold"], text=prompt["text"]
            )
            answer = await self.gate_or_stored(ctx, incident, prompt)
            stored = await first(self.f.decisions, incident, answer)
        texts = {
            "approved": ("disputed", f"{dollars(prompt['hold'])} held back, as decided"),
            "declined": ("paid", "paid as billed, as decided"),
            "undecided": ("undecided", "undecided, not disputed"),
        }
        outcome, text = texts[stored["answer"]]
        await self.f.event_once(outcome, incident, by=stored["by"], text=text)
        return {"outcome": outcome, "by": stored["by"], "text": text}

    async def gate_or_stored(self, ctx: ls.AgentCtx, incident: str, prompt: dict[str, Any]) -> dict[str, str]:
        """Whichever comes first: the gate's answer on the log, or a decision stored while this process was down."""
        within = float(self.f.me.switches.get("answer_within") or ANSWER_WITHIN)
        gate = asyncio.ensure_future(ctx.approval_gate(LANE, json.dumps(prompt), timeout_ms=within * 1000))
        look = asyncio.ensure_future(self.stored_decision(incident))
        await asyncio.wait({gate, look}, return_when=asyncio.FIRST_COMPLETED)
        if look.done():
            gate.cancel()
            return look.result()
        look.cancel()
        try:
            gate.result()
            return {"answer": "approved", "by": "person"}
        except ls.RejectedError:
            return {"answer": "declined", "by": "person"}
        except ls.TimeoutError:  # caught, or the SDK's retries would ask again and again
            return {"answer": "undecided", "by": "nobody"}

    async def stored_decision(self, incident: str) -> dict[str, str]:
        """Wait for a decision to be stored."""
        while (stored := await get_json(self.f.decisions, incident)) is None:  # noqa: ASYNC110 (it is in KV)
            await asyncio.sleep(_LOOK)
        return stored

    async def totals(self, fork: str | None = None) -> Mapping[str, Totals]:
        """The usual drop and kilometre totals of each van: of the real views, or of a fork."""
        laser = self.f.laser
        made, missed, driven = (
            await readers.delivered(laser, fork),
            await readers.failed(laser, fork),
            await readers.metres(laser, fork),
        )
        vans = sorted({*made, *missed, *driven})
        return {v: Totals(made.get(v, 0), missed.get(v, 0), kilometres(driven.get(v, 0.0))) for v in vans}

    def fork(self, incident: str) -> ls.ForkHandle:
        return self.f.laser.fork(f"bill-{incident}")

    async def refuse(self, ctx: ls.AgentCtx, message: ls.AgentMessage, why: str) -> None:
        """Answer that this will never work: a handler that raises would only let the contract time out."""
        envelope = message.envelope
        log = ctx.laser().agdx(LANE, self.f.name, envelope["conversation"])
        error = {"code": UNREADABLE, "message": why, "retryable": False}
        await log.fail(envelope["correlation"], error, target=envelope["source"])


async def main(me: Process) -> None:
    fleet = Fleet(me)
    await me.laser.topic(INBOX).ensure(LANES)
    await me.serve(
        INBOX,
        Invoice(fleet).handle,
        respond_on=LANE,
        capabilities=list(INVOICE),
        retry_max_attempts=3,
        retry_base_delay_ms=100,
        poll_interval_ms=10,
        dead_letter=fleet.lost,
        ack_on_pickup=True,
    )
