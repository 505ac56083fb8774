"""What the measuring needs of a system, whichever it is: open a ticket, answer its question, say which processes work."""

from pathlib import Path
from typing import Protocol

from bench.rivals.outside import Outside


class System(Protocol):
    """One system, freshly started on a folder of its own."""

    name: str
    outside: Outside

    async def start(self, folder: Path) -> None:
        """Returns when it takes tickets."""
        ...

    async def open(self) -> str:
        """A customer writes; returns the ticket."""
        ...

    async def approve(self, ticket: str) -> None:
        """A person says yes. Saying it twice must not hurt."""
        ...

    def pids(self) -> list[int]:
        """The processes that work on tickets now: what chaos kills, all of them together."""
        ...

    async def stop(self) -> None:
        """End it, or what there is of it when its start failed."""
        ...
