"""A template for any agent of several steps: leave a bookmark before the first, record each, look for both at the start.

    done = await so_far(desk, session)
    for name, step in STEPS.items():
        if name not in done:
            call = await session.tool(name, {})
            done[name] = await step(desk, body, done)
            await call.complete(json.dumps(done[name]).encode())

A step that was begun and not recorded is done again: what it does in the world needs a key derived from the job.
"""

import json
from collections.abc import Sequence
from typing import Any

import laser_sdk as ls

from desk.support.agent import Desk


async def so_far(desk: Desk, session: ls.Session) -> dict[str, Any]:
    """The results recorded since the bookmark, by step. Where there is no bookmark one is left, and nothing is done."""
    saved = await desk.ckpts.get(desk.handoff)
    if saved is None:
        cp = await session.checkpoint()
        await desk.ckpts.set(desk.handoff).bytes(json.dumps({"cp": cp.to_json()})).send()
        return {}
    cp = ls.Checkpoint.from_json(json.loads(bytes(saved))["cp"])
    done = recorded(await session.turns_since(cp))
    await desk.event("replay", key=False, text=f"from checkpoint, recorded: {', '.join(done) or 'nothing'}")
    return done


def recorded(turns: Sequence[ls.SessionTurn]) -> dict[str, Any]:
    """Step -> result, of every call that has one."""
    steps, done = {}, {}
    for turn in turns:
        envelope = turn.message.envelope
        if turn.display == "tool.call":
            steps[envelope["correlation"]] = envelope["tool"]
        elif turn.display == "tool.result" and envelope["kind"] == "response":
            done[steps[envelope["correlation"]]] = json.loads(turn.text())
    return done
