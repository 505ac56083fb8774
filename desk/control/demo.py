"""`python -m desk demo`: a ticket in a terminal, the resolver killed in the hold, every claim checked."""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass

from desk.control import support
from desk.control.errors import DeskError
from desk.control.events import Event
from desk.wording import counted

_HOLD = 8.0  # seconds; the kill comes after the first
_SHOWN = {
    "handoff": "",
    "checkpoint": "resolver",
    "lookup": "resolver",
    "holding": "resolver",
    "replay": "resolver",
    "asked": "resolver",
    "approved": "person",
    "declined": "person",
    "paid": "",
    "closed": "ticket",
}


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The subcommand and its arguments."""
    parser = commands.add_parser(
        "demo", help="open a ticket, kill the resolver, watch another finish it", description=__doc__
    )
    parser.set_defaults(run=lambda arguments: asyncio.run(demo()))


@dataclass(frozen=True)
class Check:
    """One claim of the demo. holds: whether it is so; found: what was counted."""

    claim: str
    holds: bool
    found: str


async def demo() -> int:
    """Run it. Returns the exit code: 0 only when every check holds."""
    try:
        desk = await support.start(name="demo", policy_pause=_HOLD, on_line=_print)
    except DeskError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        checks = await _one_ticket(desk)
    except DeskError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        await desk.stop()
    for check in checks:
        if not check.holds:
            print(f"does not hold: {check.claim} ({check.found})", file=sys.stderr)
    if not all(check.holds for check in checks):
        return 1
    _print("ticket closed, looked up once, refunded once")
    return 0


async def _one_ticket(desk: support.SupportDesk) -> list[Check]:
    teller = Teller(time.time())
    ticket = await desk.open_ticket("duplicate")
    _print(f'ticket    {ticket}  "{ticket.text}"        customer {ticket.customer}')
    teller.tell_all(desk.events())
    desk.listen(teller.tell_all)

    await desk.until(ticket, "holding")
    await asyncio.sleep(1.0)
    dead = await desk.kill("resolver", by="demo")
    await desk.until(ticket, "asked")
    await asyncio.sleep(0.5)
    await desk.approve(ticket)
    await desk.until(ticket, "closed")
    return _check(desk, ticket, dead)


def _check(desk: support.SupportDesk, ticket: str, dead: int) -> list[Check]:
    """Judge the run by the log and the bank's own book."""
    counts, events = desk.counts(ticket), desk.events()
    replays = [event for event in events if event["kind"] == "replay" and event["ticket"] == ticket]
    paid = [payment.cents for payment in desk.bank.payments()]
    lost = sum(event["kind"] == "dead_letter" for event in events)
    return [
        Check("another process replayed", [r["pid"] == dead for r in replays] == [False], counted(len(replays), "replay")),
        Check("looked up once", counts.looked_up == 1, counted(counts.looked_up, "time")),
        Check("held once", counts.held == 1, counted(counts.held, "time")),
        Check("asked a person once", counts.asked_raw == 1, counted(counts.asked_raw, "time")),
        Check("told the customer once", counts.replied_raw == 1, counted(counts.replied_raw, "time")),
        Check("refunded $49.00 once", paid == [4900], f"the bank paid {paid} cents"),
        Check("no dead letter", lost == 0, counted(lost, "dead letter")),
    ]  # fmt: skip


class Teller:
    """Prints events as they come, with seconds since the ticket."""

    def __init__(self, since: float) -> None:
        self._since = since

    def tell_all(self, events: list[Event]) -> None:
        for event in events:
            self.tell(event)

    def tell(self, event: Event) -> None:
        kind, agent = event["kind"], event["agent"]
        if event["at"] < self._since:
            return
        if kind == "killed":
            who, words = "killed", event["text"]
        elif kind == "agent_up":
            who, words = agent, event["text"].removeprefix(f"{agent} ")
        elif (kind in _SHOWN and event.get("state") != "refund") or (
            kind == "ledger" and event["state"] == "done"
        ):
            who, words = _SHOWN.get(kind) or agent, event["text"]
        else:
            return
        if kind == "replay":
            words = f"replay {words}"
        _print(f"{event['at'] - self._since:5.2f} s   {who:10} {words}")


def _print(line: str) -> None:
    print(line, flush=True)
