"""Be an agent that no supervisor knows: `python -m desk.proving.stray`, its spec a line of JSON on stdin.

It ends when stdin does.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from desk.proving.relay import Relay
from desk.proving.stage import FIRED, SILENT, python
from desk.runtime import life
from desk.runtime.process import run
from desk.runtime.spec import Spec
from desk.supervisor.client import Supervisor


@asynccontextmanager
async def replaced(spec: Spec, relay: Relay) -> AsyncIterator[None]:
    """When the agent behind the relay has been stopped for long enough, another takes its place; it goes with the
    block.
    """
    process: asyncio.subprocess.Process | None = None

    async def replace() -> None:
        nonlocal process
        await relay.fired.wait()
        await asyncio.sleep(1.2 * SILENT)
        with (spec.folder / "logs" / "stray.err").open("ab") as log:
            process = await python("-m", "desk.proving.stray", stderr=log)
        process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")

    replacing = asyncio.create_task(replace())
    try:
        yield
    finally:
        replacing.cancel()
        if process:
            process.kill()
            await process.wait()


async def go_on(agent: str, relay: Relay, supervisor: Supervisor) -> None:
    """Continue the stopped agent, and give it time to do what it still means to do, or to leave."""
    os.kill(relay.hits[0], signal.SIGCONT)
    relay.resume()
    end = asyncio.get_running_loop().time() + FIRED
    while supervisor.states[agent].pid == relay.hits[0] and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def main() -> None:
    spec = Spec.from_json(json.loads(os.read(0, 2**16)))
    life.end_with_parent()
    life.end_with_pipe(0)
    run(spec, lambda what: None)


if __name__ == "__main__":
    sys.exit(main())
