"""The supervisor's own events, `killed` and `died`, written without ever waiting for a stack that does not answer."""

import asyncio
import contextlib
import time
from collections import deque
from typing import Any

import laser_sdk as ls

from desk.runtime.connect import StackUnreachable, connect
from desk.runtime.events import Events

_RETRY = 0.5  # seconds
_KEPT = 1000  # events to remember while the stack is away


class Journal:
    """Events in order, each tried until it is on the log."""

    def __init__(self, connection: str, stream: str, topic: str) -> None:
        self._where = connection, stream, topic
        self._waiting: deque[tuple[dict[str, Any], asyncio.Future[None]]] = deque(maxlen=_KEPT)
        self._more = asyncio.Event()
        self._task = asyncio.create_task(self._write_all())

    def note(self, kind: str, *, agent: str, pid: int, **fields: Any) -> asyncio.Future[None]:
        """Put an event in line. The future is done when it is on the log."""
        at = time.time()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The key makes a retry of a write that did arrive recognisable.
        key = f"{kind}:{agent}:{pid}:{at}"
        self._waiting.append(
            ({"kind": kind, "agent": agent, "pid": pid, "at": at, "key": key, **fields}, done)
        )
        self._more.set()
        return done

    async def write(self, kind: str, within: float, **fields: Any) -> None:
        """Note an event and wait for it, but not longer than `within` seconds: it then follows later."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.note(kind, **fields)), within)

    async def close(self, within: float) -> None:
        """Give the last events `within` seconds to be written."""
        if self._waiting:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._waiting[-1][1]), within)
        self._task.cancel()

    async def _write_all(self) -> None:
        connection, stream, topic = self._where
        while True:
            try:
                laser = await connect(connection, stream)
                events = Events(laser, topic, "supervisor")
                while True:
                    await self._more.wait()
                    while self._waiting:
                        event, done = self._waiting[0]
                        await events.emit(**event)
                        if self._waiting[0][1] is done:  # else the line overflowed meanwhile
                            self._waiting.popleft()
                        done.set_result(None)
                    self._more.clear()
            except (ls.LaserError, StackUnreachable):
                await asyncio.sleep(_RETRY)
