"""The rivals: plain Python, DBOS, LangGraph, Restate, each as one worker process and what it needs beside it."""

import asyncio
import itertools
import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.rivals import environments
from bench.rivals.outside import Outside
from bench.rivals.systems.worker import Worker, environment

_COME_UP = 30.0  # seconds
_LOOK = 0.01  # seconds


class Rival:
    """What they have in common. `module` is the worker's, in `bench.rivals.workers`."""

    name = ""
    module = ""
    outside: Outside

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._worker: Worker | None = None

    async def start(self, folder: Path) -> None:
        self._folder = folder
        self.outside = Outside(folder)
        await self._start_worker()

    async def open(self) -> str:
        ticket = f"t-{next(self._numbers)}"
        await self._open(ticket)
        return ticket

    def pids(self) -> list[int]:
        return [self._worker.pid]

    async def stop(self) -> None:
        if self._worker:
            await asyncio.to_thread(self._worker.stop)

    async def _start_worker(self, arguments: Sequence[str] = ()) -> None:
        self._worker = Worker(self._python(), f"bench.rivals.workers.{self.module}", self._folder, arguments)
        await until(lambda: any(note.what == "up" for note in self.outside.notes()), f"{self.name}'s worker")

    def _python(self) -> Path:
        return environments.python(self.name.lower())

    async def _open(self, ticket: str) -> None:
        raise NotImplementedError


class Plain(Rival):
    """Python and nothing else. Tickets and answers are files."""

    name, module = "plain", "plain"

    async def approve(self, ticket: str) -> None:
        (self._folder / "answers" / ticket).touch()

    async def _open(self, ticket: str) -> None:
        (self._folder / "inbox" / ticket).touch()

    def _python(self) -> Path:
        return Path(sys.executable)


class LangGraph(Plain):
    """LangGraph: no queue either, so the same files."""

    name, module = "LangGraph", "on_langgraph"

    def _python(self) -> Path:
        return environments.python("langgraph")


class Dbos(Rival):
    """DBOS: its client is a process in its environment that takes lines."""

    name, module = "DBOS", "on_dbos"
    _client: asyncio.subprocess.Process | None = None

    async def start(self, folder: Path) -> None:
        await super().start(folder)
        self._client = await asyncio.create_subprocess_exec(
            str(self._python()), "-P", "-m", "bench.rivals.workers.dbos_client", str(folder),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment(), cwd=folder,
        )  # fmt: skip
        self._turn = asyncio.Lock()
        await self._client.stdout.readline()

    async def approve(self, ticket: str) -> None:
        await self._say(f"approve {ticket}")

    async def stop(self) -> None:
        await super().stop()
        if self._client:
            self._client.stdin.close()
            await self._client.wait()

    async def _open(self, ticket: str) -> None:
        await self._say(f"open {ticket}")

    async def _say(self, line: str) -> None:
        async with self._turn:
            self._client.stdin.write(f"{line}\n".encode())
            if await self._client.stdout.readline() != b"ok\n":
                raise environments.RivalsError(f"DBOS's client did not take {line!r}.")


class Restate(Rival):
    """Restate: its server beside the worker, spoken to over HTTP. Only the worker is killed."""

    name, module = "Restate", "on_restate"
    _server: asyncio.subprocess.Process | None = None

    async def start(self, folder: Path) -> None:
        self._folder = folder
        self.outside = Outside(folder)
        node, ingress, admin, worker = free_ports(4)
        self._ingress = f"http://127.0.0.1:{ingress}"
        with (folder / "server.err").open("ab") as log:
            self._server = await asyncio.create_subprocess_exec(
                environments.restate_server(),
                "--base-dir",
                folder / "restate",
                "--no-logo",
                env={
                    **os.environ,
                    "RESTATE_BIND_IP": "127.0.0.1",
                    "RESTATE_ADVERTISED_HOST": "127.0.0.1",
                    "RESTATE_LISTEN_MODE": "tcp",
                    "RESTATE_BIND_PORT": str(node),
                    "RESTATE_INGRESS__BIND_PORT": str(ingress),
                    "RESTATE_ADMIN__BIND_PORT": str(admin),
                    "RESTATE_DISABLE_TELEMETRY": "true",
                    "RESTATE_LOG_FILTER": "warn",
                },
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        await self._start_worker([str(worker)])
        uri = {"uri": f"http://127.0.0.1:{worker}"}
        await until(lambda: post(f"http://127.0.0.1:{admin}/deployments", uri), "Restate's server")

    async def approve(self, ticket: str) -> None:
        await asyncio.to_thread(post, f"{self._ingress}/ticket/{ticket}/answer/send", True)

    async def stop(self) -> None:
        await super().stop()
        if self._server:
            self._server.kill()
            await self._server.wait()

    async def _open(self, ticket: str) -> None:
        await until(
            lambda: post("/".join([self._ingress, "ticket", ticket, "work", "send"]), None),
            "Restate's ingress",
        )


RIVALS = (Plain, Dbos, LangGraph, Restate)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Look again until it holds. Raises RivalsError when it does not."""
    deadline = time.monotonic() + _COME_UP
    while not await asyncio.to_thread(holds):
        if time.monotonic() > deadline:
            raise environments.RivalsError(f"{what} did not answer within {_COME_UP:g} s.")
        await asyncio.sleep(_LOOK)


def post(url: str, body: object) -> bool:
    """POST JSON (nothing for None); whether it was taken."""
    data = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"content-type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status < 300
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
