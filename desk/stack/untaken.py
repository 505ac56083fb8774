"""Replies that their clients do not take: bounded for all connections together, whoever holds most for longest goes.

A connection asks nothing more until it has taken its reply, so each holds one; a reply of less than some 64 KiB is
not noticed here.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

MOST = 256 * 1024 * 1024  # bytes; several of the largest replies, so that one client alone never reaches it
_UNNOTICED = (
    1024 * 1024
)  # of what has been taken since: the kernel takes as much for a client that never reads


class Holding(Protocol):
    """A connection."""

    @property
    def unread(self) -> int:
        """Bytes of its reply that are not taken yet."""


Held = TypeVar("Held", bound=Holding)


@dataclass(frozen=True, slots=True)
class _Reply:
    since: float  # seconds of the caller's clock
    size: int  # bytes that were not taken then


class Untaken(Generic[Held]):
    """The connections that are paused because their clients do not read. `most` is in bytes."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._replies: dict[Held, _Reply] = {}

    def paused(self, connection: Held, now: float) -> list[Held]:
        """`connection` has a reply that waits from `now` on. Returned, and forgotten: whom to close."""
        self._replies[connection] = _Reply(now, connection.unread)
        closed = []
        while sum(reply.size for reply in self._replies.values()) > self._most:
            slowest = max(self._replies, key=lambda waiting: self._seconds_left(waiting, now))
            closed.append(slowest)
            self.gone(slowest)
        return closed

    def gone(self, connection: Held) -> None:
        """The reply has been taken, or nobody will."""
        self._replies.pop(connection, None)

    def _seconds_left(self, connection: Held, now: float) -> float:
        """Until its client has the rest, at its pace so far: little for a reader, much for who never reads."""
        reply, left = self._replies[connection], connection.unread
        return (now - reply.since) * left / (reply.size - left + _UNNOTICED)
