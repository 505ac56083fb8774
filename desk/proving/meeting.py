"""Two processes that write one key at once, made certain: each waits with its write until the other has one too.

Then the early one's goes to the stack, and the late one's only when that has been applied. Whoever writes with
compare-and-swap is told of the conflict and reads anew; whoever does not overwrites what the other wrote.
"""

import asyncio

PATIENCE = 8.0  # seconds one waits for the other; less than a watchdog does


class Meeting:
    """Of one late and one early write."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._waiting, self._applied = asyncio.Event(), asyncio.Event()

    async def late(self) -> bool:
        """Wait with the late write. Whether the early one has gone by meanwhile."""
        self._waiting.set()
        met = await self._came(self._applied)
        self._waiting.clear()
        return met

    async def early(self) -> bool:
        """Wait with the early write. Whether the late one was there."""
        return await self._came(self._waiting)

    def applied(self) -> None:
        """The stack has answered the early write."""
        self._applied.set()

    async def _came(self, event: asyncio.Event) -> bool:
        try:
            async with asyncio.timeout(self._patience):
                await event.wait()
        except TimeoutError:
            return False
        return True
