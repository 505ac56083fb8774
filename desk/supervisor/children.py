"""How the supervisor starts processes: agents through the fork server, the embedded stack as a program."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from desk.runtime.spec import Spec
from desk.supervisor.folder import last_line, log_file
from desk.supervisor.refused import Refused

Stream = TypeVar("Stream")

_START = 20.0  # seconds for a program to say its first line on a busy machine
_END = 5.0  # seconds a program may take to end cleanly


async def _program(
    arguments: list[str], log: Path, *, stdin: int, keep: tuple[int, ...]
) -> asyncio.subprocess.Process:
    """Start a Python program in its own session: an Interrupt in the notebook must not reach it."""
    with log.open("ab") as stderr:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            pass_fds=keep,
            start_new_session=True,
        )


def _piped(stream: Stream | None) -> Stream:
    """The end of a pipe the process was started with."""
    assert stream is not None
    return stream


async def _first_line(
    process: asyncio.subprocess.Process, what: str, log: Path, start: int
) -> dict[str, Any]:
    try:
        line = await asyncio.wait_for(_piped(process.stdout).readline(), _START)
        return json.loads(line)
    except TimeoutError:
        text = f"{what} said nothing within {_START:g} s"
    except ValueError:
        text = f"{what} did not start: {last_line(log, start) or 'it gave no reason'}"
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    raise Refused(f"{text} (see {log}).")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait for a process that was told to end; SIGKILL it when that takes too long."""
    try:
        await asyncio.wait_for(process.wait(), _END)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class ForkServer:
    """The supervisor's end of the fork server. `reported` gets each of its reports; after `lost` it has no child left."""

    def __init__(
        self, folder: Path, lock: int, reported: Callable[[dict[str, Any]], None], lost: Callable[[], None]
    ) -> None:
        self._log = log_file(folder, "fork_server")
        self._lock = lock
        self._reported = reported
        self._lost = lost
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready = False
        self._asked: list[bytes] = []

    async def start(self) -> None:
        """Returns when it is ready to fork. Raises Refused."""
        start = self._log.stat().st_size if self._log.exists() else 0
        self._process = process = await _program(
            ["-P", "-m", "desk.supervisor.forking"],
            self._log,
            stdin=asyncio.subprocess.PIPE,
            keep=(self._lock,),
        )
        await _first_line(process, "The fork server", self._log, start)
        self._requests, self._ready = _piped(process.stdin), True
        self._requests.writelines(self._asked)
        self._asked.clear()
        self._reader = asyncio.create_task(self._read(_piped(process.stdout)))

    def fork(self, spec: Spec, log: Path) -> None:
        """Ask for a child, now or as soon as there is a fork server; the report of its birth follows."""
        line = json.dumps({"spec": spec.to_json(), "log": str(log)}).encode() + b"\n"
        if self._ready:
            self._requests.write(line)
        else:
            self._asked.append(line)

    async def stop(self) -> None:
        """End it, and so every child that is left."""
        if self._reader:
            self._reader.cancel()
        if self._process:
            _piped(self._process.stdin).close()
            await _end(self._process)

    async def _read(self, reports: asyncio.StreamReader) -> None:
        # Children hold the write end too, and do not outlive their parent: the end of the reports means that all of
        # them are gone.
        async for line in reports:
            self._reported(json.loads(line))
        self._ready = False
        self._lost()


class Stack:
    """The embedded stack: `python -m desk.stack` on the desk's folder, always on the same port."""

    def __init__(self, folder: Path, lock: int, died: Callable[[int, int], None]) -> None:
        self.connection = ""
        self.pid = 0
        self._data = folder / "stack"
        self._log = log_file(folder, "stack")
        self._lock = lock
        self._died = died
        # The supervisor holds the write end for as long as it lives, and does not hand it on.
        self._life, self._life_write = os.pipe()
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when it accepts connections. Raises Refused."""
        arguments = [
            "-P",
            "-m",
            "desk.supervisor.leash",
            str(self._life),
            "desk.stack",
            "--data",
            str(self._data),
        ]
        if self.connection:
            arguments += ["--port", self.connection.rpartition(":")[2]]
        start = self._log.stat().st_size if self._log.exists() else 0
        process = await _program(
            arguments, self._log, stdin=asyncio.subprocess.DEVNULL, keep=(self._life, self._lock)
        )
        self._process = process
        self.connection = (await _first_line(process, "The stack", self._log, start))["connection_string"]
        self.pid = process.pid
        self._watch = asyncio.create_task(self._wait(process))

    async def stop(self) -> None:
        """End it cleanly, or by SIGKILL when that takes too long."""
        if self._watch:
            self._watch.cancel()
        self.pid = 0
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)  # a stopped process could not end
        await _end(self._process)

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        async for _ in _piped(process.stdout):  # nothing more is expected; a full pipe would stop it
            pass
        code = await process.wait()
        pid, self.pid = self.pid, 0
        self._died(pid, code)
