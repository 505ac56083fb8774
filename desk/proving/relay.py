"""A TCP relay between one process and the stack that kills the process at chosen writes.

`before`: the frame never leaves for the stack. `after`: the stack has applied it, the reply never arrives. `early` and
`late`: nobody is hit, the frame waits for another process's (see `meeting`). The client is lockstep (one request in
flight a connection), so the reply that follows a frame is the frame's.

A process may be stopped there instead. Its connections then end; or they are kept, what was held back goes on when the
process does, and its groups are taken from it, as the stack does by itself to a member that is silent for long.
"""

import asyncio
import contextlib
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import psutil

from desk.proving.frames import Frames, Write, code_of, leaving, write_of
from desk.proving.meeting import Meeting

BEFORE, AFTER, EARLY, LATE = "before", "after", "early", "late"
ANY = Write("any write", "since the last kill")
KEPT = ", connection kept"
_CHUNK = 65536
_BORN = 5.0  # seconds to find whose a connection is


@dataclass(frozen=True)
class Point:
    """Where to kill or wait: the occurrence (from 1) of a write since the relay was opened, and on which side of it.

    The occurrence of an acknowledgement is the record it covers: one frame may acknowledge several. That of ANY is
    counted from the kill before.
    """

    write: Write
    occurrence: int
    side: str
    kept: bool = False
    """Whether the connections of a process that is stopped there are kept."""

    def __str__(self) -> str:
        return f"{self.side} {self.write} #{self.occurrence}{KEPT if self.kept else ''}"


@dataclass(eq=False)
class Link:
    """A connection of the process, and the one to the stack that is for it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    stack: asyncio.StreamWriter
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """The next reply is held back."""
    early: bool = False
    """The next reply is that of an early write."""
    left: list[bytes] = field(default_factory=list)
    """The requests that would undo its joining of groups."""
    asked: deque[bool] = field(default_factory=deque)
    """Of every request without a reply yet, whether it is the process's."""

    def send(self, frame: bytes) -> None:
        self.asked.append(True)
        if leave := leaving(frame):
            self.left.append(leave)
        self.stack.write(frame)

    def leave(self) -> None:
        """Leave its groups in its name."""
        for frame in self.left:
            self.asked.append(False)
            self.stack.write(frame)


class Relay:
    """One process's way to one stack, over all its lives. Without points it only takes down what goes by."""

    def __init__(
        self,
        host: str,
        port: int,
        points: Sequence[Point] = (),
        *,
        hit: signal.Signals = signal.SIGKILL,
        admits: bool = True,
        meeting: Meeting | None = None,
        name: Callable[[str], str] = str,
    ) -> None:
        """`points` are hit one after the other with the signal `hit`; unless it `admits`, nothing connects after a
        hit until `admit`. Early and late points are of the `meeting`. `name` gives what a write is about a name that
        is the same in every run.
        """
        self.seen: list[tuple[Write, int]] = []
        """Every write that came by, with its occurrence, in order."""
        self.codes: set[str] = set()
        """What was asked for, as the protocol numbers it."""
        self.hits: list[int] = []
        """The pids that were hit; 0 for a write that waited and was met."""
        self.frames: list[str] = []
        """The frame that each was hit at: its side, its write, and all the occurrences of it that it was."""
        self.port = 0
        self.likely: Callable[[], int] = lambda: 0
        """Says which process is probably the one behind it; to look through all of them takes long."""
        self.fired = asyncio.Event()
        """Set when every point is hit and, of a kill, the connection has ended."""
        self._host, self._port, self._points, self._hit, self._name = host, port, points, hit, name
        if not points:
            self.fired.set()
        self._meeting = meeting or Meeting()
        self._admits, self._open = admits, asyncio.Event()
        self._open.set()
        self._counts: Counter[Write] = Counter()
        self._acknowledged: Counter[tuple[Write, int]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._links: set[Link] = set()
        self._frame = ""
        self._resumed = asyncio.Event()
        self._server: asyncio.Server | None = None

    @property
    def due(self) -> bool:
        """Whether the write of the last point has come by: that point is hit, or about to be."""
        return bool(self._points) and (self._points[-1].write, self._points[-1].occurrence) in self.seen

    async def open(self) -> int:
        """Listen on this machine; returns the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    def shut(self) -> None:
        """Let nothing connect until `admit`."""
        self._open.clear()

    def admit(self) -> None:
        """Let connections through again."""
        self._open.set()

    def sever(self) -> None:
        """End every connection there is; new ones are accepted."""
        for task in list(self._tasks):
            task.cancel()

    def resume(self) -> None:
        """A stopped process has been continued: it finds its connections ended, or what was held back goes on."""
        if self._points[len(self.hits) - 1].kept:
            self._resumed.set()
        else:
            self.sever()

    async def close(self) -> None:
        """End everything."""
        if self._server:
            self._server.close()
        tasks = list(self._tasks)
        self.sever()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # in a task: the server made it
        self._tasks.add(task)
        try:
            await self._open.wait()
            await self._carry(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stack, to_stack = await asyncio.open_connection(self._host, self._port)
        link = Link(reader, writer, to_stack)
        self._links.add(link)
        replies = asyncio.create_task(self._down(stack, link))
        resumed = asyncio.create_task(self._resumed.wait())
        frames = Frames()
        try:
            while data := await reader.read(_CHUNK):
                for frame in frames.feed(data):
                    side = self._side(frame)
                    if side == BEFORE and not await self._fire(link):
                        return
                    if side == AFTER:
                        link.hold.set()
                    if side in (EARLY, LATE):
                        link.early = await self._meet(side) and side == EARLY
                    link.send(frame)
                await to_stack.drain()
                if link.hold.is_set():
                    await asyncio.wait((replies, resumed), return_when=asyncio.FIRST_COMPLETED)
                    if replies.done():
                        return
        finally:
            replies.cancel()
            resumed.cancel()
            self._links.discard(link)
            to_stack.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await replies

    async def _down(self, stack: asyncio.StreamReader, link: Link) -> None:
        """Replies to the process, until the one that is held back."""
        frames = Frames()
        while data := await stack.read(_CHUNK):
            for frame in frames.feed(data):
                if link.asked and not link.asked.popleft():
                    continue
                if link.hold.is_set():
                    if not await self._fire(link):
                        return
                    link.hold.clear()
                if link.early:
                    link.early = False
                    self._meeting.applied()
                link.writer.write(frame)
            await link.writer.drain()

    def _side(self, frame: bytes) -> str | None:
        """Take down a request; which side of it to kill at, if it is the next chosen one."""
        self.codes.add(code_of(frame))
        write = write_of(frame)
        if write is None:
            return None
        write = replace(write, what=self._name(write.what))
        covered = self._covered(write)
        self._counts[write] += len(covered)
        self._counts[ANY] += len(covered)
        self.seen.extend((write, occurrence) for occurrence in covered)
        if len(self.hits) == len(self._points):
            return None
        point = self._points[len(self.hits)]
        self._frame = f"{point.side} {write} #{covered.start}"
        if len(covered) > 1:
            self._frame += f" to #{covered[-1]}"
        if point.write == ANY:
            return point.side if self._counts[ANY] >= point.occurrence else None
        return point.side if write == point.write and point.occurrence in covered else None

    def _covered(self, write: Write) -> range:
        """The occurrences of this write that this frame is: of an acknowledgement, each record it newly covers."""
        number, before = 1, self._counts[write]
        if write.upto:
            number = write.upto - self._acknowledged[write, write.partition]
            self._acknowledged[write, write.partition] = max(
                write.upto, self._acknowledged[write, write.partition]
            )
        return range(before + 1, before + 1 + number)

    async def _meet(self, side: str) -> bool:
        """Wait with a frame for the other process's. Whether it came: only then is the point reached."""
        frame = self._frame
        met = await (self._meeting.early() if side == EARLY else self._meeting.late())
        if met:
            self.hits.append(0)
            self.frames.append(frame)
            self.fired.set()
        return met

    async def _fire(self, link: Link) -> bool:
        """Hit the process: see a killed one's connection end, or end a stopped one's connections to the stack.
        Returns whether what is held back goes on: a stopped process whose connections are kept has been continued.
        """
        frame, kept = self._frame, self._points[len(self.hits)].kept
        self.hits.append(0)  # so that no other frame fires meanwhile
        self._counts[ANY] = 0
        if not self._admits:
            self._open.clear()
        try:
            pid = await _owner(link.writer.get_extra_info("peername")[1], self.port, self.likely)
            os.kill(pid, self._hit)
        except (RuntimeError, ProcessLookupError):  # nobody was hit: the point is not reached
            self.hits.pop()
            self._open.set()
            return False
        self.hits[-1] = pid
        self.frames.append(frame)
        if self._hit == signal.SIGKILL:
            with contextlib.suppress(OSError):
                while await link.reader.read(_CHUNK):
                    pass
        else:
            for each in self._links:
                each.leave() if kept else each.stack.close()
        if len(self.hits) == len(self._points):
            self.fired.set()
        if self._hit != signal.SIGKILL:
            await self._resumed.wait()  # its own end of the connection stays, until somebody severs it
        return kept


async def _owner(port: int, to: int, likely: Callable[[], int]) -> int:
    """The process below this one whose end of a connection to the port `to` has that port. Another's connection to
    somewhere else may have the same.
    """
    end = asyncio.get_running_loop().time() + _BORN
    while asyncio.get_running_loop().time() < end:
        if (pid := likely()) and _has(pid, port, to):
            return pid
        for process in psutil.Process().children(recursive=True):
            if _has(process.pid, port, to):
                return process.pid
        await asyncio.sleep(0.01)
    raise RuntimeError(f"No process of the desk is connected from port {port}.")


def _has(pid: int, port: int, to: int) -> bool:
    try:
        links = psutil.Process(pid).net_connections("tcp4")
        return any(link.raddr and (link.laddr.port, link.raddr.port) == (port, to) for link in links)
    except psutil.Error:
        return False
