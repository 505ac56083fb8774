"""A probe that serves: `work` commands become `began`, a hold of body["hold"] seconds, `finished`.

Whoever has a ticket after the first does not hold.
"""

import asyncio
import json

from desk.runtime.process import Process


async def main(me: Process) -> None:
    async def work(ctx, message):
        body = json.loads(bytes(message.body()))
        await me.event("began", ticket=body["ticket"])
        held = me.folder / f"{body['ticket']}.held"
        if not held.exists():
            held.touch()
            await asyncio.sleep(body.get("hold", 0))
        await me.event("finished", ticket=body["ticket"], state=me.switches.get("mood"))

    await me.serve("agent.sessions", work, operations=["work"], max_partitions=2)
