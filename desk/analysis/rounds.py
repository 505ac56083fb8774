"""The vans' rounds as key-value state has them, in words, and beside each other."""

from collections.abc import Mapping, Sequence

import pandas as pd

from desk.analysis.palette import colour_of_van
from desk.analysis.sheet import Sheet
from desk.analysis.streets import places
from desk.control.fleet import FleetDesk


async def rounds(fleet: FleetDesk) -> Sheet:
    """Every van: how many drops it has before it, and the suburbs in order."""
    rows = []
    for van, round_ in sorted((await fleet.rounds()).items()):
        suburbs = list(dict.fromkeys(places()[stop].suburb for stop in round_.drops))
        rows.append((van, len(round_.drops), ", ".join(suburbs) or "on its way home"))
    return Sheet(pd.DataFrame(rows, columns=["van", "drops", "by way of"]).set_index("van"))


async def drops(fleet: FleetDesk, van: str) -> list[str]:
    """The drops that van has before it, in order, by name."""
    return [f"{places()[stop].name}, {places()[stop].suburb}" for stop in (await fleet.rounds())[van].drops]


def beside(columns: Mapping[str, Sequence[str]]) -> Sheet:
    """Several rounds side by side, drop by drop."""
    longest = max(map(len, columns.values()), default=0)
    padded = {name: [*column, *[""] * (longest - len(column))] for name, column in columns.items()}
    return Sheet(pd.DataFrame(padded, index=pd.Index(range(1, longest + 1), name="drop")))


def coloured_van(van: str) -> str:
    """A van's name beside its colour, as HTML."""
    return f'<span style="color:{colour_of_van(van)}">■</span> {van}'
