"""The end of a day: its checks, and its first plans beside those of a solver."""

import pandas as pd

from desk.analysis.sheet import Sheet
from desk.control.fleet import FleetDesk
from desk.delivery.planning.compare import compare
from desk.delivery.planning.round import DEPOT, Round
from desk.delivery.planning.start import start_rounds
from desk.delivery.roads import load_legs, load_places


async def checks(fleet: FleetDesk) -> Sheet:
    """Every claim about the day, and whether it holds. How much was counted differs under chaos and is left out."""
    rows = [
        (check.claim, "holds" if check.holds else f"FAILS: {check.found}") for check in await fleet.checks()
    ]
    return Sheet(pd.DataFrame(rows, columns=["claim", ""]).set_index("claim"))


def morning(vans: int) -> dict[str, Round]:
    """The rounds every day with so many vans begins with."""
    points = {place.id: (place.lon, place.lat) for place in load_places().values()}
    depot = points.pop(DEPOT)
    found, _ = start_rounds(depot, points, [f"van-{n}" for n in range(1, vans + 1)], load_legs().metres)
    return found


def plans_beside_solver(vans: int) -> Sheet:
    """Kilometres of the first rounds, and of OR-Tools' for the same drops and vans."""
    found = compare(morning(vans), load_legs().metres)
    rows = [
        ("the desk's rounds", f"{found.desk / 1000:.1f}", f"{found.over:.0%}"),
        ("the solver's", f"{found.solver / 1000:.1f}", "0%"),
    ]
    return Sheet(pd.DataFrame(rows, columns=["plan", "km", "further than the solver's"]).set_index("plan"))
