"""A probe whose work is done at once."""

from desk.runtime.process import Process


async def main(me: Process) -> None:
    await me.up()
