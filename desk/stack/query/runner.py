"""Queries run here: a few threads, each with a read-only connection of its own. The loop never waits for one.

A statement is stopped from outside by interrupting its connection: when its deadline passes, or somebody
cancels it. Each page is one short read transaction; nothing stays open between pages.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import apsw

from desk.stack.query import functions

THREADS = 3
STEPS = 100_000  # of SQLite's machine, about a millisecond: how often a statement asks whether it was stopped
Work = Callable[[apsw.Connection], Any]


class Stopped(Exception):
    """The work was interrupted; `why` is "cancelled" or "deadline"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass
class Job:
    """One piece of work on its way through a thread. `stop` may come from any thread, at any time."""

    work: Work
    future: asyncio.Future[Any]
    running: Callable[[], None]  # called when it leaves the queue
    why: str = ""
    _timer: asyncio.TimerHandle | None = None
    _connection: apsw.Connection | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expire_at(self, deadline_us: int) -> None:
        """Its future resolves with Stopped when this time (epoch) passes. Only on the loop's thread."""
        if self.future.done():
            return
        if self._timer is not None:
            self._timer.cancel()
        left = max(0.0, deadline_us / 1_000_000 - time.time())
        self._timer = self.future.get_loop().call_later(left, self._expire)

    def ended(self, future: asyncio.Future[Any]) -> None:
        """The future's callback: there is nothing to wait for, and work that nobody waits for ends."""
        if self._timer is not None:
            self._timer.cancel()
        if future.cancelled():
            self.stop("cancelled")

    def _expire(self) -> None:
        """The deadline passed: answer now, whether a thread has it or not."""
        self.stop("deadline")
        if not self.future.done():
            self.future.set_exception(Stopped("deadline"))

    def stop(self, why: str) -> None:
        """Interrupt it, or keep it from starting."""
        with self._lock:
            self.why = self.why or why
            if self._connection is not None:
                self._connection.interrupt()

    def run(self, connection: apsw.Connection) -> Any:
        """In the worker's thread; raises Stopped when it was stopped before the end."""
        with self._lock:
            if self.why:
                raise Stopped(self.why)
            self._connection = connection
        # an interrupt that comes between two statements is lost
        connection.set_progress_handler(lambda: bool(self.why), STEPS)
        try:
            return self.work(connection)
        except apsw.InterruptError:
            raise Stopped(self.why or "cancelled") from None
        finally:
            connection.set_progress_handler(None)
            with self._lock:
                self._connection = None


class Runner:
    """A queue and its threads, started with the first query. The threads are daemons: they never hold up an exit."""

    def __init__(self, connect: Callable[[], apsw.Connection], threads: int = THREADS) -> None:
        self._connect = connect
        self._count = threads
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unsettled = 0

    @property
    def idle(self) -> bool:
        """Does nobody wait for an answer?"""
        return not self._unsettled

    def submit(self, work: Work, deadline_us: int, running: Callable[[], None] = lambda: None) -> Job:
        """Queue work; its future resolves on the calling loop, with Stopped when the deadline (epoch) passes."""
        loop = asyncio.get_running_loop()
        if not self._threads:
            self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self._count)]
            for thread in self._threads:
                thread.start()
        job = Job(work, loop.create_future(), running)
        self._unsettled += 1
        job.future.add_done_callback(job.ended)
        job.future.add_done_callback(self._settled)
        job.expire_at(deadline_us)
        self._jobs.put(job)
        return job

    def close(self, patience: float = 1.0) -> None:
        """Let the threads end once they have nothing to do; wait `patience` seconds for them, not longer."""
        for _ in self._threads:
            self._jobs.put(None)
        until = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []

    def _settled(self, _future: asyncio.Future[Any]) -> None:
        self._unsettled -= 1

    def _serve(self) -> None:
        connection: apsw.Connection | None = None
        while (job := self._jobs.get()) is not None:
            try:
                if connection is None:
                    connection = self._connect()
                    functions.register(connection)
                job.running()
                outcome, error = job.run(connection), None
            except Exception as problem:
                outcome, error = None, problem
            loop = job.future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, job.future, outcome, error)
        if connection is not None:
            connection.close()


def _settle(future: asyncio.Future[Any], outcome: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
