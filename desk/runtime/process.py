"""The main of a desk process: what an agent module is handed as `me`, and how it ends.

A process ends by being killed or by `os._exit`, never by letting the event loop wind up: that cancels the running
handler, and the SDK dead-letters the message of a cancelled handler. Ending abruptly leaves it unacknowledged,
so the log delivers it to the next process.
"""

import asyncio
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import laser_sdk as ls

from desk.runtime.connect import StackUnreachable, connect, connection_lost
from desk.runtime.events import Events
from desk.runtime.pulse import HANG, Pulse, leave
from desk.runtime.spec import Spec
from desk.settings import Settings

Handler = Callable[[Any, Any], Awaitable[None]]

# What spawn_agent is given unless the desk says otherwise.
_SPAWN_OPTIONS: Mapping[str, Any] = {
    # The SDK's five attempts last three seconds; a stack that restarts may take longer.
    "retry_max_attempts": 10,
    # Half the way from a kill to its replay is waiting for the next poll.
    "poll_interval_ms": 3,
}


class Process:
    """One process of a desk, connected to the stack."""

    def __init__(self, spec: Spec, laser: ls.Laser, tell_up: Callable[[], None]) -> None:
        self.spec = spec
        self.laser = laser
        self.events = Events(laser, spec.events_topic, spec.name)
        self.pid = os.getpid()
        self._tell_up = tell_up
        self._is_up = False

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def settings(self) -> Settings:
        return self.spec.settings

    @property
    def switches(self) -> Mapping[str, str]:
        return self.spec.switches

    @property
    def folder(self) -> Path:
        """The desk's data folder."""
        return self.spec.folder

    def on(self, switch: str) -> bool:
        """Whether this process was started with that switch."""
        return bool(self.switches.get(switch))

    async def event(self, kind: str, **fields: Any) -> None:
        """Write one event; see `Events.emit` for the fields."""
        await self.events.emit(kind, **fields)

    async def up(self, text: str | None = None) -> None:
        """Say on the log and to the supervisor that this process is there; said once, before the first message."""
        if self._is_up:
            return
        self._is_up = True
        await self.event("agent_up", text=text or f"{self.name} up (pid {self.pid})")
        self._tell_up()

    async def serve(self, lane: str, handler: Handler, **options: Any) -> None:
        """Be the agent of this name on `lane` until killed. `options` are spawn_agent's.

        A connection lost inside the handler ends the process at once: retrying in vain would dead-letter the
        message, ending hands it to the next process.
        """
        await self.up()
        agent = self.laser.spawn_agent(
            self.name, lane, ending_when_lost(handler), **{**_SPAWN_OPTIONS, **options}
        )
        await agent.ready()
        await agent.join()
        raise StackUnreachable(f"{self.name} was cut off from {lane}.")


def ending_when_lost(handler: Handler) -> Handler:
    """`handler`, but a lost connection in it ends the process and leaves the message unacknowledged."""

    async def guarded(ctx: Any, message: Any) -> None:
        try:
            await handler(ctx, message)
        except ls.LaserError as error:
            if connection_lost(error):
                leave(f"Lost the stack: {error}.")
            raise

    return guarded


def run(spec: Spec, tell: Callable[[str], None]) -> NoReturn:
    """Import the spec's module and live its `main`, telling the supervisor "up" once and "beat" again and again.

    Ends the process: 0 when main returned, else 1.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_live(spec, tell))
    finally:  # also when a handler raised SystemExit, which comes out of the loop here
        os._exit(1)


async def _live(spec: Spec, tell: Callable[[str], None]) -> NoReturn:
    """The switch `connection` is a way to the stack of this process's own."""
    hang = float(spec.switches.get("hang_after") or HANG)
    beating = asyncio.create_task(Pulse(lambda: tell("beat"), hang).beat())
    try:
        main = importlib.import_module(spec.module).main
        laser = await connect(spec.switches.get("connection") or spec.connection, spec.stream)
        await main(Process(spec, laser, lambda: tell("up")))
        beating.cancel()
        os._exit(0)
    except StackUnreachable as error:
        leave(str(error))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
