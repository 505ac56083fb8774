"""What the events say about people and money: open questions, and what happened how often. Pure folds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from desk.outside.bank import Payment


@dataclass(frozen=True)
class Question:
    """A refund a person was asked to approve. handoff: the issue's key; cents: integer cents; what: why it is due."""

    ticket: str
    handoff: str
    order: str
    customer: str
    cents: int
    what: str
    text: str


@dataclass(frozen=True)
class Counts:
    """What happened to a ticket, counted raw: a repeat counts again. Only `asked` and `replied`, which carry derived
    ids, are once by key; their raw numbers stand beside them.
    """

    looked_up: int
    held: int
    asked: int
    asked_raw: int
    replied: int
    replied_raw: int
    bank_asked: int
    paid: int


def asked(events: Iterable[dict[str, Any]]) -> list[Question]:
    """Every question, in the order of asking, each once."""
    found: dict[str, Question] = {}
    for event in events:
        if event["kind"] == "asked":
            found.setdefault(
                event["step"],
                Question(
                    ticket=event["ticket"],
                    handoff=event["step"],
                    order=event["order"],
                    customer=event["customer"],
                    cents=event["cents"],
                    what=event["what"],
                    text=event["text"],
                ),
            )
    return list(found.values())


def waiting(events: Sequence[dict[str, Any]]) -> list[Question]:
    """The questions no decision has come for."""
    decided = {event["step"] for event in events if event["kind"] in ("approved", "declined")}
    return [question for question in asked(events) if question.handoff not in decided]


def count(
    ticket: str, events: Iterable[dict[str, Any]], payments: Iterable[Payment], bank_asked: Iterable[str]
) -> Counts:
    """Count one ticket. `payments` and `bank_asked` are the bank's own books."""
    own = [event for event in events if event.get("ticket") == ticket]
    ids = {kind: [event["id"] for event in own if event["kind"] == kind] for kind in ("asked", "reply")}
    return Counts(
        looked_up=sum(event["kind"] == "looking_up" for event in own),
        held=sum(event["kind"] == "holding" for event in own),
        asked=len(set(ids["asked"])),
        asked_raw=len(ids["asked"]),
        replied=len(set(ids["reply"])),
        replied_raw=len(ids["reply"]),
        bank_asked=sum(key.startswith(f"{ticket}:") for key in bank_asked),
        paid=sum(payment.key.startswith(f"{ticket}:") for payment in payments),
    )
