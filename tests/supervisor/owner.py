"""An owner of a desk in a process of its own: `python -m tests.supervisor.owner FOLDER`; prints one line of pids."""

import asyncio
import json
import signal
import sys
from pathlib import Path

from tests.supervisor.running import Desk, probe


async def own(folder: Path) -> Desk:
    """Start a desk of two idle probes and print the pids of the supervisor and of the desk's processes."""
    desk = await Desk.start(folder, probe("a", folder, "idle"), probe("b", folder, "idle"))
    pids = {name: state.pid for name, state in desk.supervisor.states.items()}
    print(json.dumps({"supervisor": desk.supervisor.pid, **pids}), flush=True)
    return desk


async def main() -> None:
    await own(Path(sys.argv[1]))
    await asyncio.Event().wait()


if __name__ == "__main__":
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # whoever is started in the background ignores it
    asyncio.run(main())
