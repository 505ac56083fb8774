"""A stack in a process of its own, for any test: `async with running_stack(folder) as connection`."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

START_SECONDS = 60  # patience with a busy machine; how fast it starts, bench/ measures


class StackEnded(Exception):
    """The process ended before it said where it is: `code`, and what it wrote to stderr."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"exit code {code}: {text}")
        self.code = code
        self.text = text


class StackProcess:
    """One `python -m desk.stack`. It can be killed and started again on the same folder and port."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.arguments = arguments
        self.connection = ""
        self.port = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        return self._running.pid

    async def start(self) -> str:
        """Start it; the connection string. A second start takes the port of the first, as agents expect."""
        port = ("--port", str(self.port)) if self.port else ()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "desk.stack", "--data", str(self.folder), *port, *self.arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        line = await asyncio.wait_for(self._running.stdout.readline(), START_SECONDS)
        if not line:
            error = (await self._running.stderr.read()).decode()
            raise StackEnded(await self._running.wait(), error)
        told = json.loads(line)
        self.connection, self.port = told["connection_string"], told["port"]
        return self.connection

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._running.kill()
        await self._running.wait()

    async def stop(self) -> tuple[int, str]:
        """SIGTERM; the exit code and everything it wrote to stderr. More than five seconds is a failure."""
        if self._running.returncode is None:
            self._running.send_signal(signal.SIGTERM)
        _, error = await asyncio.wait_for(self._running.communicate(), 5)
        return self._running.returncode, error.decode()

    async def end(self) -> None:
        """Whatever the state: leave no process behind."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "not started"
        return self._process


@contextlib.asynccontextmanager
async def stack_process(folder: Path, *arguments: str) -> AsyncIterator[StackProcess]:
    """A started stack that a test may kill, stop and start again."""
    stack = StackProcess(folder, *arguments)
    try:
        await stack.start()
        yield stack
    finally:
        await stack.end()


@contextlib.asynccontextmanager
async def running_stack(folder: Path, *arguments: str) -> AsyncIterator[str]:
    """A started stack's connection string."""
    async with stack_process(folder, *arguments) as stack:
        yield stack.connection
