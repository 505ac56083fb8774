"""Billing: pay an approved refund once, wherever it is killed."""

from typing import Any

import laser_sdk as ls

from desk.runtime.process import Process
from desk.support import ledger
from desk.support.agent import Desk, serve
from desk.support.policy import money


async def refund(desk: Desk, session: ls.Session, body: dict[str, Any]) -> None:
    """Pay through the bank between two ledger entries. `desk.message_key` is the handoff's idempotency key.

    `started` does not say whether the bank was reached, so the bank is asked again with the same key. It may be
    asked twice; it pays once.
    """
    key = desk.message_key
    state = await ledger.start(desk.ledger, key, {"ticket": desk.ticket, "cents": body["cents"]})
    await desk.event("ledger", state=state, key=state == "started", text=f"ledger {state}")
    if state != "found done":
        await pay(desk, body)
        await ledger.done(desk.ledger, key, {"ticket": desk.ticket, "cents": body["cents"]})
        await desk.event("ledger", state="done", text="ledger done")
    await tell_customer(desk, body)


async def pay(desk: Desk, body: dict[str, Any]) -> None:
    """Ask the bank to pay, under the key of this handoff."""
    receipt = desk.bank.pay(
        desk.message_key, body["cents"], body["customer"], f"refund of order {body['order']}"
    )
    text = "bank paid" if receipt.paid_now else "bank had paid already:"
    await desk.event("paid", cents=body["cents"], text=f"{text} {money(body['cents'])}")


async def tell_customer(desk: Desk, body: dict[str, Any]) -> None:
    """Say that the money is on its way, and end the issue."""
    amount = money(body["cents"])
    template = (
        f"Dear customer, {amount} for order {body['order']} ({body['what']}) is on its way to your bank."
    )
    await desk.reply(f"{amount} was refunded for order {body['order']}: {body['what']}.", template)
    await desk.end_issue("refunded")


async def main(me: Process) -> None:
    if me.on("baseline"):
        from desk.support.baseline import refund as work
    else:
        work = refund
    await serve(me, {"refund": work})
