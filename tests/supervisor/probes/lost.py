"""A probe whose handler finds the stack gone, in its first life only."""

import laser_sdk as ls

from desk.runtime.process import Process


async def main(me: Process) -> None:
    async def work(ctx, message):
        await me.event("began")
        once = me.folder / "was_lost"
        if not once.exists():
            once.touch()
            raise ls.TransportError("Disconnected")
        await me.event("finished")

    await me.serve("agent.sessions", work, operations=["work"], max_partitions=2)
