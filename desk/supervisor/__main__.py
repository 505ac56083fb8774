"""The supervisor: `python -m desk.supervisor`, owned by whoever holds its stdin.

Commands are JSON lines on stdin, {"id", "do", …}; answers are JSON lines on stdout, {"id", "ok"} or {"id", "error"}
with one sentence, and between them {"state": …} for every change. When stdin ends, everything below goes.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from desk.runtime.spec import Spec
from desk.supervisor.manager import Manager
from desk.supervisor.refused import Refused

_LINE = 2**20


class Service:
    """Commands in, answers out."""

    def __init__(self) -> None:
        self._manager: Manager | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._out: asyncio.WriteTransport | None = None

    async def run(self) -> None:
        """Until stdin ends, a `stop` was answered, or SIGTERM."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        self._out, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
        serving = asyncio.create_task(self._serve(reader))
        loop.add_signal_handler(signal.SIGTERM, serving.cancel)
        await asyncio.wait([serving])
        for task in self._tasks:
            task.cancel()
        if self._manager:
            await self._manager.stop()

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        async for line in reader:
            command = json.loads(line)
            if command["do"] == "stop":
                await self._answer(command)
                return
            task = asyncio.create_task(self._answer(command))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, command: dict[str, Any]) -> None:
        number, do = command.pop("id"), command.pop("do")
        try:
            self._say(id=number, ok=await getattr(self, f"_do_{do}")(**command))
        except Refused as refused:
            self._say(id=number, error=str(refused))
        except Exception as error:
            traceback.print_exc()
            self._say(id=number, error=f"The supervisor failed at {do}: {error!r} (see its log).")

    def _say(self, **fields: Any) -> None:
        assert self._out is not None  # nobody is answered before `run` has opened it
        self._out.write(json.dumps(fields).encode() + b"\n")

    @property
    def _started(self) -> Manager:
        if self._manager is None:
            raise Refused("Nothing has been started yet.")
        return self._manager

    async def _do_start(self, folder: str, connection: str) -> dict[str, Any]:
        self._manager = Manager(Path(folder), lambda state: self._say(state=state))
        await self._manager.start(connection)
        return {"connection": self._manager.connection}

    async def _do_launch(self, specs: list[dict[str, Any]]) -> None:
        await self._started.launch([Spec.from_json(spec) for spec in specs])

    async def _do_kill(self, name: str, by: str) -> int:
        return await self._started.kill(name, by)

    async def _do_restart(self, name: str, module: str | None, switches: dict[str, str | None]) -> None:
        await self._started.restart(name, module, switches)

    async def _do_chaos(self, on: bool, every: float, seed: int, names: list[str] | None) -> None:
        await self._started.chaos(on, every, seed, names)

    async def _do_stop(self) -> None:
        if self._manager:
            await self._manager.stop()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(Service().run())
    os._exit(0)  # not waiting for the SDK's threads


if __name__ == "__main__":
    main()
