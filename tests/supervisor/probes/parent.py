"""A probe that has started a program of its own."""

import asyncio

from desk.runtime.process import Process


async def main(me: Process) -> None:
    program = await asyncio.create_subprocess_exec("sleep", "300")
    await me.event("started", child=program.pid)
    await me.up()
    await asyncio.Event().wait()
