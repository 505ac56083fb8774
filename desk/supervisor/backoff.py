"""When to start a process that died again: at once, unless it keeps dying."""

WINDOW = 10.0
"""Seconds in which deaths are counted, and which a process must live to be trusted again."""
LIMIT = 5
"""Deaths in a window that make a process failing; and deaths one after the other before it was up, however long they
take: on a busy machine a process may need seconds to fail."""
RETRY = 3.0
"""Seconds between tries of a failing process."""


class Backoff:
    """The deaths of one process that nobody asked for. Times are seconds of one clock, given by the caller."""

    def __init__(self) -> None:
        self.failing = False
        self._deaths: list[float] = []
        self._stillborn = 0

    def died(self, born: float, now: float, was_up: bool = True) -> float:
        """Count a death; returns how many seconds to wait before the next start."""
        self._stillborn = 0 if was_up else self._stillborn + 1
        if now - born >= WINDOW:
            self.failing = False
        self._deaths = [at for at in self._deaths if now - at < WINDOW] + [now]
        self.failing = self.failing or len(self._deaths) >= LIMIT or self._stillborn >= LIMIT
        return RETRY if self.failing else 0.0
