"""Are the answers good? Checks that need no model: each reads one ticket's records and says yes, no, or nothing.

A check that does not apply to a ticket (a citation in a refusal) says nothing, so that it cannot count as passed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from desk.analysis.incoming import Letter, incoming
from desk.analysis.sheet import Sheet
from desk.analysis.story import Event
from desk.control.support import SupportDesk
from desk.support import world

_MONEY = re.compile(r"\$[\d,]+\.\d\d")
_ORDER = re.compile(r"\border (\d+)", re.I)
_ASKED = re.compile(r"question, order (\d+)")
_CITED = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class Record:
    """What the log and the bank hold of one ticket. replies: id -> text, each once; paid: payments made."""

    letter: Letter
    events: Sequence[Event]
    replies: Mapping[str, str]
    paid: int

    @property
    def text(self) -> str:
        """All that the customer was told."""
        return " ".join(self.replies.values())

    @property
    def is_answer(self) -> bool:
        """Whether a question was answered."""
        return any(event["kind"] == "answer" for event in self.events)

    @property
    def asked_about(self) -> list[str]:
        """The orders a question was about, as triage read it."""
        read = [str(event.get("text")) for event in self.events if event["kind"] == "triage"]
        return _ASKED.findall(" ".join(read))


def ended_as_due(record: Record) -> bool | None:
    """As the scenario says: refunds are paid, the others are not, and the policy named the reason."""
    if not record.letter.due:
        return None
    states = {event.get("state") for event in record.events if event["kind"] in ("policy", "closed")}
    if record.letter.due == "refunded":
        return bool(record.paid) is (record.letter.answer == "approve")
    return record.letter.due in states and not record.paid


def invents_nothing(record: Record) -> bool | None:
    """Every amount and every order in a reply stands in the customer's message or on the log before it."""
    known = " ".join(
        [record.letter.text, *(str(e.get("text")) for e in record.events if e["kind"] != "reply")]
    )
    named = {*_MONEY.findall(record.text), *_ORDER.findall(record.text)}
    return all(name in known or _in_policy(name) for name in named)


def cites_what_exists(record: Record) -> bool | None:
    """An answer cites, and only what is there: an article, an order record, a customer's history."""
    if not record.is_answer:
        return None
    cited = _CITED.findall(record.text)
    return bool(cited) and all(_exists(source) for source in cited)


def answers_what_was_asked(record: Record) -> bool | None:
    """Whoever asks about an order of theirs is told what the order's record says."""
    if not record.asked_about:
        return None
    return all(f"[order {number}]" in record.text for number in record.asked_about)


CHECKS: Mapping[str, Callable[[Record], bool | None]] = {
    "ended as due": ended_as_due,
    "invents nothing": invents_nothing,
    "cites what exists": cites_what_exists,
    "answers what was asked": answers_what_was_asked,
}


async def evals(support: SupportDesk) -> Sheet:
    """Every check on every ticket of this desk: yes, no, or nothing where it does not apply."""
    records = await records_of(support)
    rows = [[_word(check(record)) for check in CHECKS.values()] for record in records]
    index = pd.Index([record.letter.ticket for record in records], name="ticket")
    return Sheet(pd.DataFrame(rows, columns=list(CHECKS), index=index))


async def records_of(support: SupportDesk) -> list[Record]:
    """What there is of every ticket."""
    return [_record(support, letter) for letter in await incoming(support)]


def _record(support: SupportDesk, letter: Letter) -> Record:
    events = support.events(letter.ticket)
    replies = {event["id"]: event["text"] for event in events if event["kind"] == "reply"}
    return Record(letter, events, replies, support.counts(letter.ticket).paid)


def _word(verdict: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[verdict]


def _in_policy(name: str) -> bool:
    """Whether the policy itself names it, as its limit."""
    terms = world.load().terms
    return name == f"${terms.limit_cents / 100:,.2f}"


def _exists(source: str) -> bool:
    there = world.load()
    kind, _, name = source.partition(" ")
    if kind == "order":
        return name in there.orders or name == "record"
    if kind == "history":
        return name in there.customers
    return any(article["id"] == source for article in there.knowledge) or source == "knowledge base"
