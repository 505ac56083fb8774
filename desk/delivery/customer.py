"""Customer: tell the affected customers what is happening and when to expect their parcel, and remember delays.

The messages are saved before any is sent; a text that cannot be sent is tried again, then parked for a person.
"""

import base64
import json
from typing import Any

import laser_sdk as ls

from desk.delivery import messages
from desk.delivery.exceptions import CUSTOMER, DeliveryException
from desk.delivery.fleet import Fleet, body_of, exception_of
from desk.delivery.layout import INBOX, LANE, LANES, MEMORY_STREAM, MEMORY_TOPIC
from desk.outside.sms import Sms
from desk.runtime.process import Process
from desk.runtime.saved import first, get_json, once, put_json
from desk.wording import counted

SMS = "sms"
"""The key of the gateway's fault."""


class Customer:
    """The customer agent."""

    def __init__(self, fleet: Fleet) -> None:
        self.f = fleet
        self.memory = fleet.laser.memory_on_topic(MEMORY_TOPIC, stream=MEMORY_STREAM)
        self.sms = Sms(self.gateway_is_down, self.deliver)

    async def handle(self, ctx: ls.AgentCtx, message: ls.AgentMessage) -> None:
        """Tell everybody affected, unless that is done; answer with the saved messages."""
        body = body_of(message)
        exc = exception_of(body)
        done = await get_json(self.f.results, f"{exc.id}:notify")
        if done is None:
            await self.f.event(
                "start", van=exc.van, incident=exc.id, step="notify", text=f"notify of {exc.id}"
            )
            done = await self.notify(exc, body["outputs"])
            done = await first(self.f.results, f"{exc.id}:notify", done)
        await self.f.event_once("step", exc.id, "notify", van=done["van"], state="done", text=done["text"])
        await ctx.respond(json.dumps(done))

    async def notify(self, exc: DeliveryException, outputs: dict[str, Any]) -> dict[str, Any]:
        """Write the messages, save them, then send them."""
        routed = outputs.get("replan") or outputs["assign"]
        saved = await once(self.f.results, f"{exc.id}:messages", lambda: self.write(exc, routed["arrivals"]))
        for message in saved:
            await self.sms.send(message["stop"], message["text"], key=f"{exc.id}:{message['customer']}:told")
        text = f"{len(saved)} customer{'s' if len(saved) != 1 else ''} told"
        return {"van": routed["van"], "text": text, "messages": saved}

    async def write(self, exc: DeliveryException, arrivals: dict[str, float | None]) -> list[dict[str, Any]]:
        """A message for each affected customer."""
        written = []
        for stop, arrival in arrivals.items():
            place = self.f.places[stop]
            before = await self.delays_before(exc, place.customer)
            draft = messages.message(exc, place, arrival, before)
            text = await self.f.write(draft)
            written.append({"stop": stop, "customer": place.customer, "text": text.text, "by": text.by,
                            "incident": exc.id})  # fmt: skip
        return written

    async def delays_before(self, exc: DeliveryException, customer: str) -> int:
        """How often we were late to this customer before, on any day; and remember this time."""
        if not messages.is_delay(exc):
            return 0
        now = json.dumps(messages.memory(exc), sort_keys=True)  # the body is what makes it the same memory
        mine = await self.memory.remember(now, user=customer, agent=self.f.name, dedup=True)
        known = await self.memory.recall(user=customer, limit=100)
        return sum(item.id != mine for item in known)

    async def gateway_is_down(self) -> bool:
        fault = await get_json(self.f.faults, SMS)
        return bool(fault) and fault["down"]

    async def deliver(self, stop: str, text: str, key: str) -> None:
        """A text that went out is an event."""
        incident = key.partition(":")[0]
        await self.f.event("told", stop=stop, incident=incident, step="notify", text=text, key=key)

    async def park(self, message: ls.AgentMessage | None, capsule: dict[str, Any], error: Any) -> None:
        """Retries have run out: keep the message where the desk shows it. One an incident, the newest."""
        if message is None:
            return
        exc = exception_of(body_of(message))
        await put_json(
            self.f.parked, exc.id, {"capsule": safe(capsule), "incident": exc.id, "step": "notify"}
        )
        text = (
            f"message parked after {counted(capsule.get('attempts', 0), 'attempt')}: {capsule.get('detail')}"
        )
        await self.f.event("parked", van=exc.van, incident=exc.id, step="notify", state="waiting", text=text)


def safe(capsule: dict[str, Any]) -> dict[str, Any]:
    """A dead letter as JSON can hold it: its bytes made text."""
    source, payload = bytes(capsule["source"]).hex(), base64.b64encode(bytes(capsule["payload"])).decode()
    return {**capsule, "source": source, "payload": payload}


def unsafe(saved: dict[str, Any]) -> dict[str, Any]:
    """What `safe` was given."""
    source, payload = bytes.fromhex(saved["source"]), base64.b64decode(saved["payload"])
    return {**saved, "source": source, "payload": payload}


async def main(me: Process) -> None:
    fleet = Fleet(me)
    customer = Customer(fleet)
    await me.laser.topic(INBOX).ensure(LANES)
    await fleet.up()
    await me.serve(
        INBOX,
        customer.handle,
        respond_on=LANE,
        capabilities=list(CUSTOMER),
        max_partitions=LANES,
        retry_max_attempts=3,
        retry_base_delay_ms=100,
        poll_interval_ms=10,
        dead_letter=customer.park,
    )
