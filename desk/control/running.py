"""What both desks are: processes under a supervisor, a client of the stack, the log; and what one does with those."""

import asyncio
import contextlib
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import laser_sdk as ls

from desk.control import arguments
from desk.control.errors import DeskError
from desk.control.events import Event, EventLog
from desk.runtime import records
from desk.runtime.connect import StackUnreachable, connect
from desk.runtime.events import Events
from desk.runtime.spec import Spec
from desk.settings import Settings
from desk.supervisor.client import ProcessState, Supervisor, SupervisorError

ANSWER = 30.0
"""Seconds to wait for the stack to take something; a stack that was killed is back in two."""
PATIENCE = 10.0
"""Seconds to wait for a stack to answer at the start."""
_GOODBYE = 2.0  # seconds the client may take to close


class Running:
    """A desk of some agents. Every method that acts is a coroutine; what only reads the log so far is not."""

    agents: Sequence[str]
    """The processes a monkey may kill."""
    topic: str
    """Where its events are."""
    reads: Callable[[ls.Message], dict[str, Any] | None] = staticmethod(records.event)
    """What an event of this desk is read with; None is what is not its own."""

    def __init__(self, settings: Settings, folder: Path, stream: str, on_line: Callable[[str], None]) -> None:
        self.settings, self.folder, self.stream = settings, folder, stream
        self._on_line, self._running = on_line, True
        self._shown = os.path.relpath(folder)
        self._supervisor: Supervisor | None = None
        self._laser: ls.Laser | None = None
        self._log: EventLog | None = None

    @property
    def running(self) -> bool:
        """Whether it has not been stopped."""
        return self._running

    @property
    def laser(self) -> ls.Laser:
        """The client this process talks to the stack with."""
        return self._while_running(self._laser)

    @property
    def log(self) -> EventLog:
        """The events read so far; also of a desk that has stopped."""
        if self._log is None:
            raise DeskError("This desk never came up: start another.")
        return self._log

    @property
    def supervisor(self) -> Supervisor:
        """The owner's end of the supervisor."""
        return self._while_running(self._supervisor)

    @property
    def processes(self) -> Mapping[str, ProcessState]:
        """Every process by name, as the supervisor sees it."""
        return self.supervisor.states

    def listen(self, callback: Callable[[list[Event]], None]) -> Callable[[], None]:
        """Call back with new events as they come; returns what ends that."""
        return self.log.listen(callback)

    def hear(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with one sentence when the log cannot be read, and with "" when it can be again; returns what ends
        that."""

        def told(trouble: str) -> None:
            said = trouble and f"The log cannot be read ({trouble}): what is shown is how things stood."
            callback(self._end().strip() or said)

        def ended(_state: ProcessState) -> None:
            if self._running and self._end():
                callback(self._end().strip())

        removers = [self.log.hear(told)]
        if self._supervisor:
            removers.append(self._supervisor.listen(ended))

        def remove() -> None:
            for each in removers:
                each()

        return remove

    async def kill(self, name: str, by: str = "code") -> int:
        """SIGKILL that process; the supervisor starts another. Returns the pid that was killed."""
        self._known(name)
        arguments.words(by, "Who kills", "code")
        return await self._ask(self.supervisor.kill(name, by=by))

    async def restart(self, name: str, **switches: str) -> None:
        """End that process cleanly and start it with these switches changed; an empty one is taken away."""
        self._known(name)
        for switch, value in switches.items():
            if not isinstance(value, str):
                raise DeskError(f'A switch is text, as in {switch}="1", not {arguments.shown(value)}.')
        await self._ask(self.supervisor.restart(name, **switches))

    async def chaos(self, on: bool, *, every: float = 2.0, seed: int | None = None) -> None:
        """Turn the monkey on or off: it kills a random agent every so many seconds (give or take a half)."""
        arguments.on_or_off(on, "Chaos")
        arguments.seconds(every, "every", least=0.01)
        chosen = self.settings.seed if seed is None else arguments.whole(seed, "A seed")
        await self._ask(self.supervisor.chaos(on, every=every, seed=chosen, names=self.agents))

    async def stop(self) -> None:
        """End every process of the desk. The folder keeps everything, and what was read can still be looked at."""
        self._running = False
        if self._log:
            await self._log.stop()
        if self._laser:
            with contextlib.suppress(ls.LaserError, TimeoutError):
                await asyncio.wait_for(self._laser.close(), _GOODBYE)
        if self._supervisor:
            await self._supervisor.stop()

    async def come_up(self, specs: Sequence[Spec]) -> None:
        """Start the stack and these processes. Raises DeskError, with nothing left running."""
        try:
            await self._start(specs)
        except (SupervisorError, StackUnreachable, ls.LaserError) as error:
            await self.stop()
            raise DeskError(str(error)) from None
        except BaseException:
            await self.stop()
            raise

    async def _start(self, specs: Sequence[Spec]) -> None:
        self._supervisor = await Supervisor.start(
            folder=self.folder,
            specs=specs,
            embedded=not self.settings.connection,
            connection=self.settings.connection,
        )
        self._laser = await connect(self._supervisor.connection, self.stream, timeout=PATIENCE)
        where = self._supervisor.connection.rpartition("@")[2]
        self._on_line(f"stack     up on {where}, data {self._shown}")
        await self._lay_out()
        self._events = Events(self._laser, self.topic, "person")
        self._log = EventLog(self._laser, self.topic, self.reads)
        await self._log.start()
        await self._supervisor.launch()
        states = self._supervisor.states
        self._on_line("   ".join(f"{name:9} up (pid {states[name].pid})" for name in self.agents))

    async def _lay_out(self) -> None:
        """Make the desk's topics, views and groups."""
        raise NotImplementedError

    def _spec(self, name: str, module: str, switches: Mapping[str, str] | None = None) -> Spec:
        return Spec(
            name=name,
            module=module,
            stream=self.stream,
            events_topic=self.topic,
            folder=self.folder,
            settings=self.settings,
            switches=switches or {},
        )

    def _known(self, name: str) -> str:
        return arguments.choice(name, self.processes, "process named")

    def _while_running(self, what: Any) -> Any:
        if what is None or not self._running:
            raise DeskError("This desk has stopped: start another.")
        return what

    async def _ask(self, work: Awaitable[Any]) -> Any:
        """What the supervisor answers. Raises DeskError when it refuses."""
        try:
            return await work
        except SupervisorError as error:
            raise DeskError(str(error)) from None

    async def _from_stack(self, work: Awaitable[Any]) -> Any:
        """What the stack answers. Raises DeskError when it refuses, or cannot be reached for ANSWER seconds."""
        try:
            ended = self.supervisor.ended
        except DeskError:
            if inspect.iscoroutine(work):
                work.close()  # never begun, and meant so
            raise
        try:
            return await asyncio.wait_for(work, 1.0 if ended else ANSWER)
        except (TimeoutError, ls.LaserError) as error:
            if ended:
                raise DeskError("The supervisor has ended: start the desk again.") from None
            why = "did not answer in time" if isinstance(error, TimeoutError) else f"refused: {error}"
            if isinstance(error, ls.TransportError):
                why = f"cannot be reached: {error}"
            raise DeskError(f"The stack {why}; what was asked may still have reached it.") from None

    def _slip(self, kinds: Sequence[str]) -> str:
        """What was perhaps meant by a kind that nothing on the log is of: " Did you mean closed?", or ""."""
        there = {str(event["kind"]) for event in self.log.rows}
        for kind in (kind.partition(":")[0] for kind in kinds):
            if kind not in there and (near := arguments.near(kind, there)):
                return f" Did you mean {near}?"
        return ""

    def _end(self) -> str:
        """What explains every silence, or ""."""
        gone = self._supervisor is None or self._supervisor.ended
        return " The supervisor has ended: start the desk again." if gone else ""
