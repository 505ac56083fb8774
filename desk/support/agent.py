"""What the three support agents share: a handler gets a `Desk`, which knows the message it is about.

Everything written goes to the ticket's session under ids derived from the handoff (`t-1:resolve-1`), so doing it
twice is the same as once.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import laser_sdk as ls

from desk.outside.bank import Bank
from desk.outside.writer import Text, Writer, make_writer
from desk.runtime.process import Process
from desk.runtime.saved import compare_and_swap, first, get_json, once
from desk.support import cases, world

LANE = "agent.sessions"
PARTITIONS = 8
"""A handler that holds delays only the tickets of its own partition; the agents work on all of them at once."""
EVENTS = "desk.events"
PERSON = "person"
CUSTOMER = "customer"

Handler = Callable[["Desk", ls.Session, dict[str, Any]], Awaitable[None]]


class Shared:
    """What one agent process opens once, for all its messages."""

    def __init__(self, me: Process) -> None:
        self.me = me
        self.world = world.load()
        self.bank = Bank(me.folder / "bank.sqlite", forgetful=me.switches.get("bank") == "forgetful")
        self.writer: Writer = make_writer(me.settings)
        kv = me.laser.kv
        self.ckpts, self.ledger, self.decisions = kv("checkpoints"), kv("ledger"), kv("decisions")
        self.cases, self.claims, self.texts = kv("cases"), kv("claims"), kv("texts")
        self.breaks = kv("breaks")


class Desk:
    """The desk as seen from one message. `ticket` is the ticket's id, `handoff` the issue's: the key of its
    checkpoint and the root of every other key; `message_key` is the message's own idempotency key.
    """

    def __init__(self, shared: Shared, session: ls.Session, body: dict[str, Any], message_key: str) -> None:
        self.me, self.world = shared.me, shared.world
        self.bank, self.writer = shared.bank, shared.writer
        self.ckpts, self.ledger, self.decisions = shared.ckpts, shared.ledger, shared.decisions
        self.claims, self.texts = shared.claims, shared.texts
        self._cases, self._breaks = shared.cases, shared.breaks
        self._session = session
        self.ticket: str = body["ticket"]
        self.handoff: str = body.get("handoff", body["ticket"])
        self.message_key = message_key

    async def event(self, kind: str, *, state: str | None = None, key: bool = True, **fields: Any) -> None:
        """Write what this agent did. With `key` a repeat of the same work has the same event id; without it,
        each time counts by itself (a lookup, a hold, a replay). Then stop here if this is the chosen place to die.
        """
        place = f"{kind}:{state}" if state else kind
        derived = f"{self.handoff}:{place}" if key else None
        dies_here = await self._dies_at(kind, place)
        await self.me.event(kind, key=derived, ticket=self.ticket, step=self.handoff, state=state, **fields)
        if dies_here:
            if self.me.on("stands"):  # by itself: whoever sees the event and stops it may come too late
                os.kill(os.getpid(), signal.SIGSTOP)
            await asyncio.sleep(float(self.me.switches.get("die_wait", "30")))

    async def get_order(self, number: str | None) -> dict[str, Any] | None:
        """Ask the shop for an order: the expensive thing nobody wants to do twice. Each time is an event."""
        await self.event("looking_up", key=False, text=f"order {number}")
        return self.world.orders.get(number or "")

    async def hold(self) -> None:
        """Wait DESK_POLICY_PAUSE seconds at the policy step, so that a person can press Kill."""
        pause = self.me.settings.policy_pause
        words = (
            f"holding {pause:g} s at the policy step: kill it now" if pause else "at the policy step, no hold"
        )
        await self.event("holding", key=False, text=words)
        await asyncio.sleep(pause)

    async def hand(self, target: str, operation: str, body: Mapping[str, Any], key: str) -> None:
        """Hand work to another agent, or a question to a person: a command in the ticket's session."""
        await self._log().command(
            ls.derive_conversation_id(key),
            json.dumps({"ticket": self.ticket, **body}).encode(),
            operation=operation,
            target=target,
            idempotency_key=key,
            content_type="json",
        )

    async def reply(self, facts: str, template: str) -> None:
        """Write to the customer, unless this issue has ended: then they were told. The text is saved before it is
        sent, because a model never answers twice alike.
        """
        case = await get_json(self._cases, self.ticket)
        if case["issues"].get(self.handoff):
            return
        key = f"{self.handoff}:reply"
        saved = await once(self.texts, key, lambda: self._write(facts, template))
        await self._log().respond(
            ls.derive_conversation_id(key),
            saved["text"].encode(),
            operation="reply",
            target=CUSTOMER,
            idempotency_key=key,
        )
        await self.event("reply", text=saved["text"], by=saved["by"])

    async def end_issue(self, outcome: str) -> None:
        """This issue has ended. Whoever ends the last issue of a ticket ends its session."""
        case = await compare_and_swap(
            self._cases, self.ticket, lambda case: cases.ended(case, self.handoff, outcome)
        )
        if case["closed_by"] == self.handoff:
            await self._session.end()
            await self.event("closed", state=case["issues"][self.handoff], text="closed")

    async def open_issues(self, handoffs: list[str]) -> None:
        """Remember the issues of this ticket before any of them is handed on."""
        await first(self._cases, self.ticket, cases.opened(handoffs))

    def _log(self) -> ls.Agdx:
        return self.me.laser.agdx(LANE, self.me.name, self._session.conversation)

    async def _write(self, facts: str, template: str) -> dict[str, str]:
        text: Text = await self.writer.write(facts, template)
        if text.trouble:
            await self.event("writer", text=f"{text.trouble}: the template is used")
        return {"text": text.text, "by": text.by}

    async def _dies_at(self, kind: str, place: str) -> bool:
        """Whether the switch `die_at` names this event: after writing it the process holds still to be killed.

        Only for the ticket `die_for` names, if it is set: another may come first, redelivered. Once per ticket, and
        noted before the event is written: the kill comes as soon as somebody reads it.
        """
        switches = self.me.switches
        if switches.get("die_at") not in (kind, place) or switches.get("die_for", self.ticket) != self.ticket:
            return False
        return await first(self._breaks, f"{self.ticket}:{place}", self.me.pid) == self.me.pid


async def serve(me: Process, operations: Mapping[str, Handler]) -> None:
    """Be an agent that answers these commands, until killed."""
    shared = Shared(me)

    async def handle(ctx: ls.AgentCtx, message: ls.AgentMessage) -> None:
        body = _body(message)
        if body is None:
            await me.event("unreadable", text="a command without a ticket was set aside")
            return
        session = ctx.session()
        desk = Desk(shared, session, body, message.provenance.idempotency_key or "")
        operation = message.envelope["operation"]
        await operations[operation](desk, session, body)
        await desk.event("done", key=False, state=operation)

    async def dead_letter(message: ls.AgentMessage, capsule: dict[str, Any], error: Any) -> None:
        body = _body(message) or {}
        await me.event("dead_letter", ticket=body.get("ticket"), text=str(capsule.get("detail"))[:300])

    await me.serve(
        LANE, handle, operations=list(operations), max_partitions=PARTITIONS, dead_letter=dead_letter
    )


def _body(message: ls.AgentMessage) -> dict[str, Any] | None:
    """The JSON object a command carries, if it is about a ticket."""
    try:
        body = json.loads(bytes(message.body()))
    except ValueError:
        return None
    return body if isinstance(body, dict) and isinstance(body.get("ticket"), str) else None
