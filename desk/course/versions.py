"""Two versions of an agent on the same day: the customers' messages from one log, given to another desk."""

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from desk.analysis.evals import CHECKS, records_of
from desk.analysis.incoming import Letter
from desk.analysis.sheet import Sheet
from desk.analysis.spending import spent
from desk.control.lane import Ticket
from desk.control.support import SupportDesk

_SENTENCE = re.compile(r"(?<=[.\]]) (?=[A-Z])")


async def same_day(support: SupportDesk, letters: Sequence[Letter]) -> list[Ticket]:
    """Let these customers write to this desk, one after the other, and answer each question as it was answered."""
    tickets = []
    for letter in letters:
        ticket = await support.open_ticket(letter.text, letter.customer)
        await support.see_through(ticket, letter.answer)
        tickets.append(ticket)
    return tickets


async def versions(desks: Mapping[str, SupportDesk], prices: Mapping[str, float]) -> Sheet:
    """One row a desk: what its tickets cost, in cents, and how many of the checks that apply each passed."""
    rows = {}
    for label, support in desks.items():
        records = await records_of(support)
        verdicts = {name: [check(record) for record in records] for name, check in CHECKS.items()}
        table = spent(support, [record.letter.ticket for record in records], prices).table
        passed = {
            name: f"{found.count(True)} of {found.count(True) + found.count(False)}"
            for name, found in verdicts.items()
        }
        rows[label] = {"tickets": len(records), "cents": table.loc["together", "cents"], **passed}
    return Sheet(pd.DataFrame.from_dict(rows, orient="index"))


async def told_otherwise(before: SupportDesk, after: SupportDesk) -> Sheet:
    """The tickets whose customers are told something else by the second desk: what only one of the two says."""
    pairs = zip(await records_of(before), await records_of(after), strict=True)
    rows = [
        (old.letter.ticket, *_differing(old.text, new.text)) for old, new in pairs if old.text != new.text
    ]
    return Sheet(pd.DataFrame(rows, columns=["ticket", "only before", "only after"]).set_index("ticket"))


def _differing(before: str, after: str) -> tuple[str, str]:
    """The sentences of each that the other does not have."""
    one, other = (_SENTENCE.split(text) for text in (before, after))
    return " ".join(s for s in one if s not in other), " ".join(s for s in other if s not in one)
