"""A TCP relay between one agent and the stack that kills the agent at a chosen write.

`before`: the frame never leaves for the stack. `after`: the stack has applied it, the reply never arrives. The client
is lockstep (one request in flight a connection), so the reply that follows a frame is the frame's.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from desk.proving.frames import Frames, Write, write_of

BEFORE, AFTER = "before", "after"
_CHUNK = 65536


@dataclass(frozen=True)
class Point:
    """Where to kill: the occurrence (from 1) of a write since the relay was opened, and on which side of it.

    The occurrence of an acknowledgement is the record it covers: one frame may acknowledge several.
    """

    write: Write
    occurrence: int
    side: str

    def __str__(self) -> str:
        return f"{self.side} {self.write} #{self.occurrence}"


class Relay:
    """One agent's way to one stack. Without a point it only takes down what goes by."""

    def __init__(self, host: str, port: int, point: Point | None, kill: Callable[[], Awaitable[int]]) -> None:
        """`kill` ends the agent by SIGKILL and returns its pid."""
        self.seen: list[tuple[Write, int]] = []
        """Every write that came by, with its occurrence, in order."""
        self.killed = 0
        """The pid that was killed, 0 before."""
        self.port = 0
        self.fired = asyncio.Event()
        """Set when the agent is dead: its connection has ended."""
        self._host, self._port = host, port
        self._point, self._kill = point, kill
        self._counts: Counter[Write] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Listen on this machine; returns the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def close(self) -> None:
        """End every connection."""
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._carry(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stack_reader, stack_writer = await asyncio.open_connection(self._host, self._port)
        replies = asyncio.create_task(self._down(stack_reader, writer, hold := asyncio.Event(), reader))
        frames = Frames()
        try:
            while data := await reader.read(_CHUNK):
                for frame in frames.feed(data):
                    side = self._side(frame)
                    if side == BEFORE:
                        await self._fire(reader)
                        return
                    if side == AFTER:
                        hold.set()
                    stack_writer.write(frame)
                await stack_writer.drain()
                if hold.is_set():
                    await replies
                    return
        finally:
            replies.cancel()
            stack_writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await replies

    async def _down(
        self,
        stack: asyncio.StreamReader,
        agent: asyncio.StreamWriter,
        hold: asyncio.Event,
        agent_reader: asyncio.StreamReader,
    ) -> None:
        """Replies to the agent, until the one that is held back."""
        frames = Frames()
        while data := await stack.read(_CHUNK):
            for frame in frames.feed(data):
                if hold.is_set():
                    await self._fire(agent_reader)
                    return
                agent.write(frame)
            await agent.drain()

    def _side(self, frame: bytes) -> str | None:
        """Take down a write; which side of it to kill at, if it is the chosen one."""
        write = write_of(frame)
        if write is None:
            return None
        before = self._counts[write]
        self._counts[write] = write.upto or before + 1
        covered = range(before + 1, self._counts[write] + 1)
        self.seen.extend((write, occurrence) for occurrence in covered)
        point = self._point
        if point and not self.killed and write == point.write and point.occurrence in covered:
            return point.side
        return None

    async def _fire(self, agent: asyncio.StreamReader) -> None:
        """Kill the agent and see its connection end."""
        self.killed = await self._kill()
        with contextlib.suppress(OSError):
            while await agent.read(_CHUNK):
                pass
        self.fired.set()
