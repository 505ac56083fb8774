"""A probe whose first process blocks in its handler: a loop that turns no more. The next one finishes the work.

The switch `block` says for how many seconds.
"""

import json
import time

from desk.runtime.process import Process


async def main(me: Process) -> None:
    async def work(ctx, message):
        ticket = json.loads(bytes(message.body()))["ticket"]
        await me.event("began", ticket=ticket)
        blocked = me.folder / "blocked"
        if not blocked.exists():
            blocked.touch()
            time.sleep(float(me.switches["block"]))  # noqa: ASYNC251 (this is what is tried)
        await me.event("finished", ticket=ticket)

    await me.serve("agent.sessions", work, operations=["work"], max_partitions=2)
