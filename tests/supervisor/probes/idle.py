"""A probe that comes up and does nothing."""

import asyncio

from desk.runtime.process import Process


async def main(me: Process) -> None:
    await me.up()
    await asyncio.Event().wait()
