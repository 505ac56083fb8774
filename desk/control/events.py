"""The events topic as a client reads it: followed in the background, kept in log order, waited on by condition."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable
from typing import Any

import laser_sdk as ls

from desk.control.errors import DeskError
from desk.runtime import records

_PID = re.compile(r"\s*\(pid \d+[^)]*\)| pid \d+")
SILENT = 5.0
"""Seconds after which a stack that has not answered a look at the log is said not to answer."""
_BETWEEN = 0.02  # seconds between two looks at the log: an empty one costs a third of a millisecond


class Event(dict[str, Any]):
    """One event as it is on the log. Printed, it is a sentence without process ids and times."""

    def __repr__(self) -> str:
        return sentence(self)

    __str__ = __repr__


def sentence(event: dict[str, Any]) -> str:
    """ "resolver, t-1: holding 8 s at the policy step: kill it now"."""
    words = _PID.sub("", event.get("text") or event["kind"].replace("_", " "))
    who = event.get("agent", "")
    ticket = event.get("ticket")
    if words.startswith(f"{who} "):
        words = words.removeprefix(f"{who} ")
    return f"{who}, {ticket}: {words}" if ticket else f"{who} {words}"


def matches(event: dict[str, Any], kind: str) -> bool:
    """Whether an event is of this kind; "ledger:done" is the kind ledger in the state done."""
    name, _, state = kind.partition(":")
    return event["kind"] == name and (not state or event.get("state") == state)


class EventLog:
    """Everything on one events topic so far, and everything to come. One reader per desk."""

    def __init__(
        self,
        laser: ls.Laser,
        topic: str,
        read: Callable[[ls.Message], dict[str, Any] | None] = records.event,
    ) -> None:
        """`read` gives the event of a message, and None for what is not the desk's."""
        self.rows: list[Event] = []
        """Every event, repeats included, in log order."""
        self.foreign = 0
        """How many records on the topic were not the desk's and were passed over."""
        self._laser, self._topic, self._read = laser, topic, read
        self._cursor = laser.topic(topic).replay()
        self._listeners: list[Callable[[list[Event]], None]] = []
        self._hearers: list[Callable[[str], None]] = []
        self._changed = asyncio.Event()
        self._trouble = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read what is there and follow."""
        self._take(await self._cursor.poll())
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Read what is left, and follow no more."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def listen(self, callback: Callable[[list[Event]], None]) -> Callable[[], None]:
        """Call back on the loop with the new events whenever there are some; returns what ends that."""
        self._listeners.append(callback)

        def remove() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(callback)

        return remove

    def hear(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back on the loop with why the log cannot be read, and with "" when it can be again; returns what ends
        that."""
        self._hearers.append(callback)

        def remove() -> None:
            with contextlib.suppress(ValueError):
                self._hearers.remove(callback)

        return remove

    async def wait(
        self, wanted: Callable[[Event], bool], timeout: float, missing: Callable[[], str]
    ) -> Event:
        """The first event, past ones included, that is wanted. timeout in seconds; `missing` says what did not come.

        Raises DeskError when it does not come in time.
        """
        seen = 0
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            changed = self._changed
            for event in self.rows[seen:]:
                if wanted(event):
                    return event
            seen = len(self.rows)
            left = deadline - loop.time()
            if left <= 0:
                raise DeskError(missing() + (f" The log: {self._trouble}." if self._trouble else ""))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(left, 0.25))

    async def _follow(self) -> None:
        while True:
            look = asyncio.ensure_future(self._cursor.poll())
            try:
                if not (await asyncio.wait({look}, timeout=SILENT))[0]:
                    self._tell("the stack does not answer")
                self._take(await look)
                self._tell("")
            except (
                ls.LaserError
            ) as error:  # the stack is away: it comes back, and the offsets are still right
                self._tell(str(error))
                await asyncio.sleep(_BETWEEN * 10)
            finally:
                look.cancel()
            await asyncio.sleep(_BETWEEN)

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            for hearer in list(self._hearers):
                hearer(trouble)

    def _take(self, messages: Iterable[ls.Message]) -> None:
        read = [self._read(message) for message in messages]
        new = [Event(event) for event in read if event is not None]
        self.foreign += len(read) - len(new)
        if not new:
            return
        self.rows.extend(new)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for listener in list(self._listeners):
            listener(new)
