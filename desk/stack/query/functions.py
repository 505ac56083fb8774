"""What SQLite lacks: population standard deviation, cosine distance, fork cells."""

import math

import apsw

from desk.stack.query.kinds import Cell, Misfit, fit
from desk.stack.query.vectors import distance


def register(db: apsw.Connection) -> None:
    """Give one connection the functions that compiled queries use."""
    db.create_aggregate_function("std_dev", StdDev, 1)
    db.create_scalar_function("distance", distance, 2, deterministic=True)
    db.create_scalar_function("fitted", fitted, 2, deterministic=True)


class StdDev:
    """Population standard deviation (Welford); null over nothing."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def step(self, value: float | None) -> None:
        if value is not None:
            self.count += 1
            away = value - self.mean
            self.mean += away / self.count
            self.squares += away * (value - self.mean)

    def final(self) -> float | None:
        return math.sqrt(self.squares / self.count) if self.count else None


def fitted(text: str | None, kind: str) -> Cell:
    """A cell that was put into a fork as text, as its column's kind; null when it does not read as one."""
    if text is None:
        return None
    try:
        return fit(text, kind, read_text=True)[1]
    except Misfit:
        return None
