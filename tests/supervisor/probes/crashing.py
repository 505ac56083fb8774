"""A probe that fails while the file `broken` is in its folder."""

import asyncio

from desk.runtime.process import Process


async def main(me: Process) -> None:
    if (me.folder / "broken").exists():
        raise ValueError("the file is broken")
    await me.up()
    await asyncio.Event().wait()
