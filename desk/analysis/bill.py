"""The carrier's bill beside the log, and beside a fork of the log's views."""

import pandas as pd

from desk.analysis.rounds import coloured_van
from desk.analysis.sheet import Sheet
from desk.control.fleet import FleetDesk
from desk.delivery import readers
from desk.delivery.carrier import Bill
from desk.delivery.rates import Rates, dollars, kilometres
from desk.delivery.reconcile import Totals, billed_totals, reconcile, unexplained

_NONE = Totals(0, 0, kilometres(0.0))


async def totals(fleet: FleetDesk, fork: str | None = None) -> dict[str, Totals]:
    """Drops, failed drops and kilometres of each van, asked of the real views, or of a fork of them."""
    laser = fleet.laser
    made, missed = await readers.delivered(laser, fork), await readers.failed(laser, fork)
    driven = await readers.metres(laser, fork)
    vans = sorted({*made, *missed, *driven})
    return {v: Totals(made.get(v, 0), missed.get(v, 0), kilometres(driven.get(v, 0.0))) for v in vans}


def billed(fleet: FleetDesk) -> Bill:
    """The carrier's bill of the day. Raises LookupError while there is none."""
    for event in fleet.events():
        if event["kind"] == "bill":
            return Bill.from_json(event["bill"])
    raise LookupError("There is no bill yet: the carrier sends it when the day is over.")


async def bill_beside(fleet: FleetDesk, fork: str | None = None) -> Sheet:
    """Each van: what the bill charges for, and what the views (or a fork of them) count."""
    counted, bill = await totals(fleet, fork), billed(fleet)
    charged = billed_totals(bill)
    rows = []
    for van in sorted({*counted, *charged}):
        b, c = charged.get(van, _NONE), counted.get(van, _NONE)
        agrees = "same" if b == c else "differs"
        rows.append((van, b.drops, c.drops, b.failed, c.failed, b.km, c.km, agrees))
    columns = [
        "drops billed",
        "drops counted",
        "failed billed",
        "failed counted",
        "km billed",
        "km counted",
        "",
    ]
    table = pd.DataFrame(rows, columns=["van", *columns]).set_index("van")
    gap = unexplained(bill, counted, Rates())
    last = "same" if gap == 0 else f"{dollars(gap)} more billed"
    table.loc["together"] = [*table.sum(numeric_only=False).iloc[:-1], last]
    return Sheet(table.astype({"km billed": str, "km counted": str}))


async def discrepancies(fleet: FleetDesk) -> Sheet:
    """What differs between the bill and the log, each with the amount to hold."""
    found = reconcile(billed(fleet), await readers.work(fleet.laser), Rates())
    rows = [(d.van, d.name, d.billed, d.logged, dollars(d.hold)) for d in found]
    columns = ["van", "what", "billed", "logged", "hold"]
    return Sheet(pd.DataFrame(rows, columns=columns).set_index("van"), {"van": coloured_van})
