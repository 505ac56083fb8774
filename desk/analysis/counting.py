"""How often things happened, as a table: raw from the log and the bank's books, nothing removed."""

from collections.abc import Iterable, Mapping

import pandas as pd

from desk.analysis.sheet import Sheet
from desk.control.errors import awaited
from desk.control.support import SupportDesk

COLUMNS = {
    "looked_up": "looked up",
    "held": "held",
    "asked": "asked a person",
    "bank_asked": "asked the bank",
    "paid": "paid",
}
RAW = {"asked_raw": "questions written", "replied_raw": "replies written"}
"""Written again by a process that repeats its work, under the same key: one for whoever reads by key."""


def counts(
    support: SupportDesk,
    tickets: str | Iterable[str] | Mapping[str, str | Iterable[str]],
    *,
    raw: bool = False,
) -> Sheet:
    """One row a ticket, or one row a label when `tickets` maps labels to a ticket or to several (then summed).

    `raw` adds how often questions and replies were written, repeats included.
    """
    rows = {
        label: [support.counts(one) for one in _tickets(of)]
        for label, of in _labelled(awaited(tickets)).items()
    }
    columns = {**COLUMNS, **RAW} if raw else COLUMNS
    table = pd.DataFrame(
        [[sum(getattr(c, field) for c in counted) for field in columns] for counted in rows.values()],
        columns=list(columns.values()),
        index=list(rows),
    )
    return Sheet(table)


def _labelled(
    tickets: str | Iterable[str] | Mapping[str, str | Iterable[str]],
) -> Mapping[str, str | Iterable[str]]:
    if isinstance(tickets, Mapping):
        return tickets
    return {str(ticket): ticket for ticket in _tickets(tickets)}


def _tickets(of: str | Iterable[str]) -> list[str]:
    awaited(of)
    return [of] if isinstance(of, str) else list(of)
