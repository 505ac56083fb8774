"""Faults that killing has found, each as small as it can be made."""

from pathlib import Path

import cbor2
import laser_sdk as ls

from desk.control import start
from desk.control.support import SupportDesk
from desk.support.agent import LANE


async def deliver_again(support: SupportDesk, ticket: str, key: str) -> None:
    """What the log does when an acknowledgement was lost: the message with that key comes a second time."""
    lane = [cbor2.loads(bytes(m.payload)) for m in await support.laser.topic(LANE).replay().poll()]
    [record] = [r for r in lane if r.get("idempotency_key") == key]
    await support.laser.agdx(LANE, record["source"], support.lane.session(ticket)).command(
        ls.derive_conversation_id(key),
        bytes(record["body"]),
        operation=record["operation"],
        target=record["target"],
        idempotency_key=key,
        content_type="json",
    )


async def test_an_issue_delivered_again_after_the_next_one_does_not_take_the_other_orders_record(
    tmp_path: Path,
) -> None:
    support = await start("support", data=tmp_path)
    try:
        ticket = await support.open_ticket("two_issues")
        await support.until(ticket, "asked")
        await support.until(ticket, "reply")  # the second issue, a question about another order
        await support.kill("resolver")  # a process knows what it has handled
        await deliver_again(support, ticket, f"{ticket}:resolve-1")
        await support.until(ticket, "replay")
        await support.approve(ticket)
        await support.until(ticket, "closed")
        counts = support.counts(ticket)
        assert (counts.looked_up, counts.replied, counts.paid) == (2, 2, 1)
        refusals = [e for e in support.events(ticket) if e["kind"] == "policy" and e["state"] != "due"]
        assert refusals == []
    finally:
        await support.stop()
