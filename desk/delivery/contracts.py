"""Ask for the invoice check with a contract, and deal with each of its four ends."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import cbor2
import laser_sdk as ls

from desk.delivery.exceptions import DeliveryException
from desk.delivery.fleet import Fleet
from desk.delivery.layout import INBOX

SKILL = "invoice-check"
DEADLINE = 660.0  # seconds: above what a person has to answer
AGAIN = 1.0


@dataclass(frozen=True)
class Answer:
    """How a contract ended. `again` says whether asking once more may help."""

    end: str
    again: bool
    text: str


async def ask(
    laser: ls.Laser, incident: str, *, deadline: float = DEADLINE, expire: float | None = None
) -> Answer:
    """One contract for the check of this bill; times in seconds.

    Only a probe may `expire`: the expiry rides on the message, and one that is delivered again after a kill would be
    taken for too late.
    """
    contract = await laser.contract(
        SKILL,
        list(json.dumps({"incident": incident}).encode()),
        source="dispatch",
        fixed_inbox=INBOX,
        deadline_ms=round(deadline * 1000),
        conversation=conversation(incident),
        expire_if_not_consumed_ms=round(expire * 1000) if expire else None,
    )
    return answer(contract)


def conversation(incident: str) -> str:
    """The conversation in which this bill is checked and a person is asked about it."""
    return ls.derive_conversation_id(f"{incident}:check")


def answer(contract: Any) -> Answer:
    """What one of the four ends means for the desk."""
    end = type(contract).__name__.removeprefix("Contract_").removeprefix("Contract.")
    if end == "Completed":
        return Answer("completed", False, json.loads(bytes(contract._0.body()))["text"])
    if end == "Failed":
        return Answer("failed", False, cbor2.loads(bytes(contract._0.body()))["message"])
    if end == "NotConsumed":
        return Answer("not consumed", True, "nobody picked the invoice check up: asking again")
    return Answer("timed out", True, "the invoice check did not answer in time: asking again")


async def check_bill(fleet: Fleet, exc: DeliveryException) -> str:
    """Ask until there is an answer. A contract is not journalled: a restarted dispatch asks again, and is answered
    from the saved check. Returns what the invoice agent found, or why it could not.
    """
    deadline = float(fleet.me.switches.get("bill_deadline") or DEADLINE)
    while True:
        try:
            found = await ask(fleet.laser, exc.id, deadline=deadline)
        except ls.LaserError as error:  # no card yet, or every copy quarantined
            found = Answer("nobody", True, f"nobody can check the bill: {error}")
        if not found.again:
            state = "checked" if found.end == "completed" else "unreadable"
            await fleet.event_once("bill_answer", exc.id, state=state, text=found.text)
            return found.text
        await fleet.event("retry", incident=exc.id, state=found.end, text=found.text)
        await asyncio.sleep(AGAIN)
