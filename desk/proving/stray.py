"""Be an agent that no supervisor knows: `python -m desk.proving.stray`, its spec a line of JSON on stdin.

It ends when stdin does.
"""

import asyncio
import json
import os
import sys

from desk.proving.relay import Relay
from desk.proving.stage import SILENT, python
from desk.runtime import life
from desk.runtime.process import run
from desk.runtime.spec import Spec


async def replacement(spec: Spec, relay: Relay) -> asyncio.subprocess.Process:
    """When the agent behind the relay has been stopped for long enough, start another in its place."""
    await relay.fired.wait()
    await asyncio.sleep(1.2 * SILENT)
    with (spec.folder / "logs" / "stray.err").open("ab") as log:
        process = await python("-m", "desk.proving.stray", stderr=log)
    process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
    return process


def main() -> None:
    spec = Spec.from_json(json.loads(os.read(0, 2**16)))
    life.end_with_parent()
    life.end_with_pipe(0)
    run(spec, lambda what: None)


if __name__ == "__main__":
    sys.exit(main())
