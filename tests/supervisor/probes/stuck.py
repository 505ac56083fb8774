"""A probe whose first process turns its loop no more in its handler. The next one finishes the work.

It blocks for as many seconds as the switch `block` says; without one it stops, until somebody continues it.
"""

import json
import os
import signal
import time

from desk.runtime.process import Process


async def main(me: Process) -> None:
    async def work(ctx, message):
        ticket = json.loads(bytes(message.body()))["ticket"]
        await me.event("began", ticket=ticket)
        blocked = me.folder / "blocked"
        if not blocked.exists():
            blocked.touch()
            if me.on("block"):
                time.sleep(float(me.switches["block"]))  # noqa: ASYNC251 (this is what is tried)
            else:
                os.kill(me.pid, signal.SIGSTOP)
            (me.folder / "went on").touch()
        await me.event("finished", ticket=ticket)

    await me.serve("agent.sessions", work, operations=["work"], max_partitions=2)
