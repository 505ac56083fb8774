"""Servers that a benchmark starts and ends: the stack itself and those it is measured against."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import laser_sdk as ls
import psutil

from desk.runtime.connect import connect


class Process:
    """A server in a process of its own that says in its first line of output where it listens."""

    def __init__(self, module: str, *arguments: str) -> None:
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
        except BaseException:
            self.kill()  # told to end before anybody could have stopped it
            raise
        self.seconds_to_start = time.perf_counter() - started
        """From the fork to the line that says that it accepts."""
        self.connection: str = json.loads(line)["connection_string"]
        self._seen = psutil.Process(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.connection.rpartition("@")[2].partition(":")
        return host, int(port)

    def resident_mb(self) -> float:
        """Resident memory in MB (10**6 bytes)."""
        return self._seen.memory_info().rss / 1e6

    def cpu_seconds(self) -> float:
        """User and system time since the start."""
        times = self._seen.cpu_times()
        return times.user + times.system

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()
        self._closed()

    def stop(self) -> None:
        """SIGTERM; SIGKILL when that takes too long."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._closed()

    def _closed(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()


def stack(folder: Path, *arguments: str) -> Process:
    """The embedded stack on the data of `folder`."""
    return Process("desk.stack", "--data", str(folder), *arguments)


async def client(server: Process, stream: str = "bench") -> ls.Laser:
    """A connected client with a stream of its own, made when missing."""
    laser = await connect(server.connection, stream)
    await laser.stream(stream).ensure()
    return laser


@asynccontextmanager
async def connected(server: Process) -> AsyncIterator[ls.Laser]:
    laser = await client(server)
    try:
        yield laser
    finally:
        await laser.close()


@contextmanager
def running(server: Process) -> Iterator[Process]:
    """Stop the server at the end, whatever the end is."""
    try:
        yield server
    finally:
        server.stop()
