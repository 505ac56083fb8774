"""What the processes of the delivery desk share: where things are kept, and events with the demo minute."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import laser_sdk as ls

from desk.delivery import readers
from desk.delivery.exceptions import DeliveryException
from desk.delivery.messages import TASK, Draft
from desk.delivery.planning.round import Round
from desk.delivery.roads import load_places
from desk.outside.writer import Text, make_writer
from desk.runtime.process import Process
from desk.runtime.saved import first, get_json

CLOCK = "clock"
"""The key, in cursors, under which the simulator keeps the demo minute."""
ROSTER = "roster"
"""The key, in cursors, of which vans drive: the last one on it cannot leave."""


class Fleet:
    """One process's hold on the shared desk."""

    def __init__(self, me: Process) -> None:
        self.me, self.laser, self.name = me, me.laser, me.name
        self.day = me.spec.stream.removeprefix("fleet-")
        self.places = load_places()
        self._writer = make_writer(me.settings, TASK)
        kv = me.laser.kv
        self.rounds, self.stops, self.exceptions, self.results = (
            kv("rounds"), kv("stops"), kv("exceptions"), kv("results"),
        )  # fmt: skip
        self.parked, self.decisions, self.faults, self.cursors = (
            kv("parked"), kv("decisions"), kv("faults"), kv("cursors"),
        )  # fmt: skip

    async def minute(self) -> float:
        """What the demo clock says now."""
        return (await get_json(self.cursors, CLOCK)) or 0.0

    async def event(self, kind: str, *, minute: float | None = None, **fields: Any) -> None:
        """Write what this process did; the minute is the clock's unless given."""
        now = await self.minute() if minute is None else minute
        dies_here = await self._dies_at(kind, fields)
        await self.me.event(kind, minute=now, **fields)
        if dies_here:
            await asyncio.sleep(30)

    async def event_once(self, kind: str, incident: str, step: str | None = None, **fields: Any) -> None:
        """Write this of an incident unless the log has it: for what a killed process may or may not have written."""
        if not await readers.happened(self.laser, kind, incident, step):
            key = f"{incident}:{step}:{kind}" if step else f"{incident}:{kind}"
            await self.event(kind, incident=incident, step=step, key=key, **fields)

    async def write(self, draft: Draft) -> Text:
        """A text by whoever DESK_LLM names; an event when it had to be the template after all."""
        text = await self._writer.write(draft.facts, draft.template)
        if text.trouble:
            await self.event("writer", text=f"{text.trouble}: the template is used")
        return text

    async def up(self) -> None:
        """Say that this process is there, and who writes its texts."""
        await self.me.up(f"{self.name} up (pid {self.me.pid}, LLM {self.me.settings.llm})")

    async def all_rounds(self) -> dict[str, Round]:
        """Every van's round as KV has it now."""
        return {van: Round.from_json(value) for van, value in (await scan_json(self.rounds)).items()}

    async def lost(self, message: ls.AgentMessage | None, capsule: dict[str, Any], error: Any) -> None:
        """A dead-letter hook that says so: dispatch sends the step again."""
        await self.event("dead_letter", text=str(capsule.get("detail"))[:300])

    async def _dies_at(self, kind: str, fields: dict[str, Any]) -> bool:
        """Whether the switch `die_at` names this event ("checkpoint", "step:notify"): after writing it the process
        holds still once, to be killed. Noted before the event is written: the kill comes as soon as somebody reads it.
        """
        place = self.me.switches.get("die_at")
        if place not in (kind, f"{kind}:{fields.get('step')}"):
            return False
        return await first(self.cursors, f"break:{self.name}:{place}", self.me.pid) == self.me.pid


async def scan_json(kv: ls.Kv) -> dict[str, Any]:
    """Everything in a namespace."""
    entries: Iterable[Any] = await kv.scan().entries()
    return {bytes(e.key).decode(): json.loads(bytes(e.value)) for e in entries}


def body_of(message: ls.AgentMessage) -> dict[str, Any]:
    """The JSON a step's message carries."""
    return json.loads(bytes(message.body()))


def exception_of(body: dict[str, Any]) -> DeliveryException:
    """The exception a step's message is about."""
    return DeliveryException(**body["exc"])
