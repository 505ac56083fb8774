"""The carrier's bill for a day: one line for each drop, each failed drop and each van's kilometres. Pure.

The carrier is made up, and so are its rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from desk.delivery.rates import Rates, kilometres

WHATS = ("drop", "failed", "km")
_MOST = 10_000_000  # of anything on one line


@dataclass(frozen=True)
class Line:
    """One line of a bill. `what` is drop, failed or km; `stop` is empty for kilometres."""

    van: str
    what: str
    stop: str
    quantity: Decimal
    cents: int


@dataclass(frozen=True)
class Bill:
    """What the carrier asks for one day."""

    day: str
    lines: tuple[Line, ...]
    total: int  # cents

    def to_json(self) -> dict[str, Any]:
        """Plain values; a quantity is text, so that no decimal is lost."""
        lines = [{**vars(line), "quantity": str(line.quantity)} for line in self.lines]
        return {"day": self.day, "lines": lines, "total": self.total}

    @classmethod
    def from_json(cls, bill: Mapping[str, Any]) -> "Bill":
        """What `to_json` gave. Raises ValueError, in a sentence, for what nobody can read."""
        try:
            day, given, total = bill["day"], list(bill["lines"]), bill["total"]
        except (TypeError, KeyError):
            raise ValueError("it has no day, no lines or no total") from None
        if not isinstance(total, int):
            raise ValueError(f"its total is {total!r}, not a number of cents")
        return cls(day, tuple(_line(number, line) for number, line in enumerate(given, 1)), total)


def _line(number: int, given: Mapping[str, Any]) -> Line:
    try:
        line = Line(**{**given, "quantity": Decimal(given["quantity"])})
        texts = all(isinstance(text, str) for text in (line.van, line.stop))
        readable = line.what in WHATS and texts and isinstance(line.cents, int) and abs(line.quantity) < _MOST
    except (TypeError, KeyError, ValueError, ArithmeticError):
        readable = False
    if not readable:
        raise ValueError(f"line {number} makes no sense: {given!r}")
    return line


@dataclass(frozen=True)
class Work:
    """What one van did, from the log: the stops it delivered, the stops it failed at (once each time), its metres."""

    delivered: Sequence[str] = ()
    failed: Sequence[str] = ()
    metres: float = 0.0


def bill_for(day: str, work: Mapping[str, Work], rates: Rates) -> Bill:
    """The honest bill for this work."""
    lines: list[Line] = []
    for van, did in sorted(work.items()):
        one = Decimal(1)
        lines += [Line(van, "drop", stop, one, rates.cents("drop", one)) for stop in did.delivered]
        lines += [Line(van, "failed", stop, one, rates.cents("failed", one)) for stop in did.failed]
        km = kilometres(did.metres)
        lines.append(Line(van, "km", "", km, rates.cents("km", km)))
    return Bill(day, tuple(lines), sum(line.cents for line in lines))


def overbilled(bill: Bill, van: str, rates: Rates, drops: int = 2, km: Decimal = Decimal(6)) -> Bill:
    """The same bill with so many drops and kilometres more on one van than it made."""
    one = Decimal(1)
    lines = [
        replace(line, quantity=line.quantity + km, cents=rates.cents("km", line.quantity + km))
        if (line.van, line.what) == (van, "km")
        else line
        for line in bill.lines
    ]
    lines += [Line(van, "drop", f"docket-{n}", one, rates.cents("drop", one)) for n in range(1, drops + 1)]
    return Bill(bill.day, tuple(lines), sum(line.cents for line in lines))
