"""Dispatch: watch the log for problems, record each as an exception, run a workflow for each, see the bill checked.

An ordinary process, not an agent. Killed anywhere, the next one finds the open exceptions and resumes each workflow
under its run id.
"""

import asyncio
import json
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import cbor2
import laser_sdk as ls

from desk.delivery import contracts, readers
from desk.delivery.exceptions import STEPS, DeliveryException
from desk.delivery.fleet import Fleet, scan_json
from desk.delivery.layout import EVENTS, INBOX, POSITIONS
from desk.delivery.ours import is_event, is_position
from desk.delivery.picking import Picker
from desk.runtime.connect import connection_lost
from desk.runtime.process import Process, leave
from desk.runtime.records import record
from desk.runtime.saved import get_json, put_json

CURSOR = "dispatch"
LOOK = 0.25  # seconds between two looks at who is connected
WAKE = 0.03  # seconds between two looks at the change feed
AGAIN = 1.0  # seconds before a workflow that failed is run again


class Dispatch:
    """Exceptions and their workflows."""

    def __init__(self, fleet: Fleet, picker: Picker) -> None:
        self.f, self.laser, self.picker = fleet, fleet.laser, picker
        self.alive: set[str] = set()
        self.running: dict[str, asyncio.Task[None]] = {}

    # -- exceptions

    async def open(self, exc: DeliveryException) -> None:
        """Record a problem unless it is on record: seen again, even after a restart, it opens nothing."""
        try:
            await self.f.exceptions.set(exc.id).json(exc.to_json()).expect_absent().commit()
        except ls.KvError as error:
            if error.version_conflict:
                return
            raise
        await self.announce(exc)
        self.start(exc)

    async def resume(self) -> None:
        """Go on with everything a dispatch before this one left open."""
        for saved in (await scan_json(self.f.exceptions)).values():
            exc = DeliveryException(**saved)
            if exc.state == "open":
                await self.announce(exc)
                await self.f.event("resume", van=exc.van, incident=exc.id,
                                   text=f"resuming workflow {exc.run[-6:]} from its journal")  # fmt: skip
                self.start(exc)

    async def announce(self, exc: DeliveryException) -> None:
        text = f"{exc.kind} opened" + (f" for {exc.van}" if exc.van else "")
        await self.f.event_once("exception", exc.id, van=exc.van, stop=exc.stop, state=exc.kind, text=text)

    def start(self, exc: DeliveryException) -> None:
        work = contracts.check_bill(self.f, exc) if exc.kind == "bill" else self.run(exc)
        self.running[exc.id] = asyncio.create_task(or_leave(self.see_through(exc, work)))

    async def see_through(self, exc: DeliveryException, work: Coroutine[Any, Any, str]) -> None:
        text = await work
        await self.f.event_once("closed", exc.id, van=exc.van, stop=exc.stop, state=exc.kind, text=text)
        await put_json(self.f.exceptions, exc.id, {**exc.to_json(), "state": "closed"})

    # -- workflows

    async def run(self, exc: DeliveryException) -> str:
        """Run the workflow of this exception until it completes; a run that failed goes on where it was."""
        while True:
            await self.while_parked(exc)
            wf = self.laser.workflow("dispatch", fixed_inbox=INBOX)
            wf.run_id(exc.run)  # the same id resumes the same run from its journal
            before: list[str] = []
            for step in STEPS[exc.kind]:
                wf.step(
                    step,
                    to_capable=step,
                    after=before or None,
                    policy=self.policy(exc, step),
                    build=body(exc, step),
                )
                before = [step]
            try:
                outcome = await wf.run()
                return json.loads(bytes(outcome.outputs[before[0]]))["text"]
            except ls.LaserError as error:
                await self.f.event("retry", van=exc.van, incident=exc.id, text=f"running again: {error}")
            await asyncio.sleep(AGAIN)

    def policy(self, exc: DeliveryException, step: str) -> Callable[[str, list[Any]], int | None]:
        """How a step chooses among the agents that serve its skill. Runs on an SDK thread: it must not wait."""

        def pick(skill: str, candidates: list[Any]) -> int | None:
            return self.picker.pick(exc.id, step, [c.agent for c in candidates], self.alive)

        return pick

    async def while_parked(self, exc: DeliveryException) -> None:
        """A message of this exception waits for a person: sending another would only park a second one."""
        while await get_json(self.f.parked, exc.id) is not None:  # noqa: ASYNC110 (it is in KV)
            await asyncio.sleep(LOOK)

    # -- the log

    async def follow(self) -> None:
        """Wake up when a view has changed, read what is new on its topic, open what is a problem."""
        at = await get_json(self.f.cursors, CURSOR) or {}
        feeds = [
            (self.laser.watch(index=view), self.laser.topic(topic).replay(from_offsets=at.get(topic)), topic)
            for view, topic in (("fleet_events", EVENTS), ("fleet_positions", POSITIONS))
        ]
        first_look = True
        while True:
            moved = False
            for feed, rows, topic in feeds:
                if not (await feed.poll() or first_look):
                    continue
                while messages := await rows.poll():
                    for message in messages:
                        await self.look_at(record(message) or {})
                at[topic], moved = rows.offsets, True
            if moved:
                await put_json(self.f.cursors, CURSOR, at)  # after handling: a crash repeats, never loses
            first_look = False
            await asyncio.sleep(WAKE)

    async def look_at(self, said: dict[str, Any]) -> None:
        if not (is_event(said) or is_position(said)):
            return
        exc = DeliveryException.from_record(said, run=ls.new_conversation_id())
        if exc is not None:
            await self.open(exc)

    async def watch_the_living(self) -> None:
        """Keep the set of agents that are connected now. A card stays in the registry when its agent dies."""
        while True:
            rows = await self.laser.client_metadata_all(metadata_only=True)
            self.alive = {cbor2.loads(bytes(row["metadata"])).get("agent") for row in rows}
            await asyncio.sleep(LOOK)


def body(exc: DeliveryException, step: str) -> Callable[[dict[str, bytes]], bytes]:
    """What a step's message carries: the exception, the step, what the steps before it answered."""

    def build(outputs: dict[str, bytes]) -> bytes:
        answers = {label: json.loads(bytes(output)) for label, output in outputs.items()}
        return json.dumps({"exc": exc.to_json(), "step": step, "outputs": answers}).encode()

    return build


async def or_leave(work: Coroutine[Any, Any, None]) -> None:
    """A task that fails ends the process: its replacement resumes, where a dead task would just be silent."""
    try:
        await work
    except Exception as error:
        if not connection_lost(error):
            traceback.print_exc()
        leave(f"{type(error).__name__}: {error}")


async def main(me: Process) -> None:
    fleet = Fleet(me)
    dispatch = Dispatch(fleet, Picker(await readers.steps(me.laser)))
    living = asyncio.create_task(or_leave(dispatch.watch_the_living()))
    await me.up()
    await dispatch.resume()
    await or_leave(dispatch.follow())
    await living
