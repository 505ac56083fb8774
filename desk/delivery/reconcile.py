"""A bill against the log: what does not agree, how much to hold, and a sentence a person can decide on. Pure.

Every discrepancy has a name:

    sum        the lines do not add up to the bill's own total
    idle       a van is billed that did not drive
    twice      a drop (or a failed drop) is billed more than once
    failed     a failed drop is billed as a delivery
    unlogged   a drop or failed drop is billed that the log has no record of
    unit       kilometres that are really metres
    km         more or fewer kilometres than the log shows, beyond rounding to one decimal
    price      a line whose amount is not the agreed one: of one drop, one failed drop, or its kilometres
    credit     a negative line
    unbilled   something in the log that is not on the bill

Together they are the whole difference between the bill and an honest one, to the cent. Amounts to hold are never
negative: what a bill leaves out or gives back is reported and not held.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from desk.delivery.carrier import Bill, Line, Work
from desk.delivery.rates import Rates, dollars, kilometres
from desk.wording import counted

NOUNS = {"drop": "drop", "failed": "failed drop"}


@dataclass(frozen=True)
class Discrepancy:
    """One thing that does not agree. `van` is empty when it is the bill's own.

    `over` is how many cents more the bill asks for because of it, negative when it asks for less.
    """

    name: str
    van: str
    billed: str
    logged: str
    over: int
    sentence: str

    @property
    def hold(self) -> int:
        """Cents to hold back."""
        return max(0, self.over)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "hold": self.hold}


def reconcile(bill: Bill, work: Mapping[str, Work], rates: Rates) -> list[Discrepancy]:
    """Everything in which the bill and the log differ, the bill's own sum first, then van by van."""
    found = list(_sum(bill))
    for van in sorted({line.van for line in bill.lines} | set(work)):
        lines = [line for line in bill.lines if line.van == van]
        found += _credits(van, [line for line in lines if line.cents < 0])
        charged = [line for line in lines if line.cents >= 0]
        did = work.get(van, Work())
        if charged and not (did.delivered or did.failed or did.metres):
            found += _idle(van, charged)
        else:
            found += _drops(van, charged, did, rates)
            found += _kilometres(van, charged, did, rates)
            found += _prices(van, charged, rates)
    return found


def to_hold(found: list[Discrepancy]) -> int:
    """Cents to hold back for all of them; what one wrong line or sum asks too little makes up for another's too much."""
    return max(0, sum(d.over if d.name in ("sum", "price") else d.hold for d in found))


def explained(found: list[Discrepancy]) -> int:
    """Cents by which the bill asks for more than an honest one."""
    return sum(d.over for d in found)


def _sum(bill: Bill) -> Iterator[Discrepancy]:
    lines = sum(line.cents for line in bill.lines)
    if lines != bill.total:
        yield Discrepancy(
            "sum",
            "",
            dollars(bill.total),
            dollars(lines),
            bill.total - lines,
            f"The bill asks for {dollars(bill.total)}, but its lines add up to {dollars(lines)}.",
        )


def _credits(van: str, lines: list[Line]) -> Iterator[Discrepancy]:
    for line in lines:
        yield Discrepancy(
            "credit",
            van,
            dollars(line.cents),
            "",
            line.cents,
            f"The bill gives {dollars(abs(line.cents))} back for {van} without saying why: nothing to hold.",
        )


def _idle(van: str, lines: list[Line]) -> Iterator[Discrepancy]:
    cents = sum(line.cents for line in lines)
    if cents:
        yield Discrepancy(
            "idle",
            van,
            dollars(cents),
            "0.0 km",
            cents,
            f"{van} is billed {dollars(cents)}, but it did not drive.",
        )


def _drops(van: str, lines: list[Line], did: Work, rates: Rates) -> Iterator[Discrepancy]:
    logged = {"drop": Counter(did.delivered), "failed": Counter(did.failed)}
    billed = {what: [line for line in lines if line.what == what] for what in NOUNS}
    missing = {what: logged[what] - Counter(line.stop for line in billed[what]) for what in NOUNS}
    for what, noun in NOUNS.items():
        over: dict[str, list[Line]] = {"twice": [], "failed": [], "unlogged": []}
        left = Counter(logged[what])
        for line in billed[what]:
            if left[line.stop]:
                left[line.stop] -= 1
            elif logged[what][line.stop]:
                over["twice"].append(line)
            elif what == "drop" and missing["failed"][line.stop]:
                missing["failed"][line.stop] -= 1
                over["failed"].append(line)
            else:
                over["unlogged"].append(line)
        yield from _too_many(van, what, over, len(billed[what]), did, rates)
        for stop in missing[what].elements() if what == "drop" else ():
            yield Discrepancy(
                "unbilled", van, "", stop, -rates.cents("drop", Decimal(1)),
                f"{van} made the {noun} at {stop}, but the bill leaves it out.",
            )  # fmt: skip
    for stop in missing["failed"].elements():
        yield Discrepancy(
            "unbilled", van, "", stop, -rates.cents("failed", Decimal(1)),
            f"{van} failed at {stop}, but the bill leaves it out.",
        )  # fmt: skip


def _too_many(
    van: str, what: str, over: dict[str, list[Line]], billed: int, did: Work, rates: Rates
) -> Iterator[Discrepancy]:
    noun, made = NOUNS[what], len(did.delivered if what == "drop" else did.failed)
    for name, lines in over.items():
        if not lines:
            continue
        stops = ", ".join(sorted({line.stop for line in lines}))
        one = rates.cents(what, Decimal(1))  # another price is a discrepancy of its own
        over_one = one - rates.cents("failed", Decimal(1)) if name == "failed" else one
        hold = over_one * len(lines)
        why = {
            "twice": f"{van} is billed more than once for the {noun} at {stops}",
            "failed": f"{van} is billed a delivery at {stops}, where it failed",
            "unlogged": f"{van} is billed {billed} {noun}s and the log shows {made}, none at {stops}",
        }[name]
        yield Discrepancy(name, van, str(billed), str(made), hold, f"{why}. Hold {dollars(hold)}.")


def _kilometres(van: str, lines: list[Line], did: Work, rates: Rates) -> Iterator[Discrepancy]:
    quantities = [line.quantity for line in lines if line.what == "km"]
    billed, logged = sum(quantities, Decimal(0)), kilometres(did.metres)
    over = sum(rates.cents("km", quantity) for quantity in quantities) - rates.cents("km", logged)
    if billed == logged and not over:
        return
    if billed == logged:
        name, why = (
            "km",
            f"{van} is billed {billed} km on {counted(len(quantities), 'line')}, each rounded to a cent",
        )
    elif kilometres(float(billed)) == logged:
        name, why = "unit", f"{van} is billed {billed} km, which is its {billed} metres: {logged} km"
    else:
        name, why = "km", f"{van} is billed {billed} km and the log shows {logged} km"
    yield Discrepancy(
        name,
        van,
        f"{billed} km",
        f"{logged} km",
        over,
        f"{why}. Hold {dollars(over)}." if over > 0 else f"{why}: nothing to hold.",
    )


def _prices(van: str, lines: list[Line], rates: Rates) -> Iterator[Discrepancy]:
    for line in lines:
        due = rates.cents(line.what, line.quantity if line.what == "km" else Decimal(1))
        if line.cents != due:
            what = f"{line.quantity} km" if line.what == "km" else f"the {NOUNS[line.what]} at {line.stop}"
            yield Discrepancy(
                "price",
                van,
                dollars(line.cents),
                dollars(due),
                line.cents - due,
                f"{van} is billed {dollars(line.cents)} for {what}, which costs {dollars(due)}.",
            )


@dataclass(frozen=True)
class Totals:
    """What a van did or is billed for, as the views count it: drops, failed drops, kilometres."""

    drops: int
    failed: int
    km: Decimal


def billed_totals(bill: Bill) -> dict[str, Totals]:
    """Each van's totals according to the bill."""
    return {
        van: Totals(
            drops=sum(line.what == "drop" and line.cents >= 0 for line in bill.lines if line.van == van),
            failed=sum(line.what == "failed" and line.cents >= 0 for line in bill.lines if line.van == van),
            km=sum(
                (line.quantity for line in bill.lines if (line.van, line.what) == (van, "km")), Decimal(0)
            ),
        )
        for van in sorted({line.van for line in bill.lines})
    }


def extra(bill: Bill, logged: Mapping[str, Totals]) -> dict[str, Totals]:
    """The work the bill charges for that the log has no record of, by van; vans without any are left out."""
    none = Totals(0, 0, Decimal(0))
    over = {
        van: Totals(
            max(0, billed.drops - logged.get(van, none).drops),
            max(0, billed.failed - logged.get(van, none).failed),
            max(Decimal(0), billed.km - logged.get(van, none).km),
        )
        for van, billed in billed_totals(bill).items()
    }
    return {van: totals for van, totals in over.items() if totals != none}


def unexplained(bill: Bill, with_extra: Mapping[str, Totals], rates: Rates) -> int:
    """Cents between the bill and the price of these totals; 0 when they explain it and all of its lines. Negative:
    billed too little.
    """
    due = sum(
        rates.cents("drop", Decimal(1)) * t.drops
        + rates.cents("failed", Decimal(1)) * t.failed
        + rates.cents("km", t.km)
        for t in with_extra.values()
    )
    return bill.total - due or sum(line.cents for line in bill.lines) - due
