"""A consumer in a process of its own: python -m tests.stack.worker CONNECTION STREAM (handle | hang)

Writes `ready`, then `got N` for each message and, in `handle`, `done N` after its commit. In `hang` it never
commits and waits to be killed.
"""

import asyncio
import sys

import laser_sdk as ls

from desk.runtime.connect import connect


def say(*words: object) -> None:
    print(*words, flush=True)


async def main(connection: str, stream: str, mode: str) -> None:
    laser: ls.Laser = await connect(connection, stream)
    group = laser.topic("jobs").consumer_group("workers")
    reader = group.consumer(
        auto_commit="disabled",
        polling="next",
        batch_length=1,
        poll_interval_ms=5,
        polling_retry_interval_ms=50,
    )
    await reader.init()
    say("ready")
    while True:
        message = await reader.next()
        say("got", message.payload.decode())
        if mode == "hang":
            await asyncio.sleep(600)
        await reader.commit(message)
        say("done", message.payload.decode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
