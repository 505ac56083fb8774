"""The refund policy: order record and wish in, decision with reasons out. Pure: no SDK, no clock, no files.

Amounts are integer cents, days are dates; the texts of the rules are data/support/policy.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from desk.wording import counted


@dataclass(frozen=True)
class Terms:
    """The numbers of the policy: the limit in cents, the windows in days, the day of asking, the rules' texts."""

    today: date
    limit_cents: int
    duplicate_days: int
    return_days: int
    rules: Mapping[str, str]


@dataclass(frozen=True)
class Decision:
    """outcome: "due", "refused" or "manager"; cents: what would be refunded; rules: the ids that decided, such as
    ("R1",); reasons: whole sentences for the customer; what: a few words for the timeline; claim: names the charge,
    so that a second request for the same charge can be told from the first.
    """

    outcome: str
    cents: int
    what: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    claim: str = ""


def money(cents: int) -> str:
    """4900 -> "$49.00"."""
    return f"${cents // 100:,}.{cents % 100:02d}"


def decide(
    order: Mapping[str, Any] | None, number: str | None, reason: str, customer: str, terms: Terms
) -> Decision:
    """Is a refund due? order: the shop's record or None; number: as the customer wrote it; reason: the wish's;
    customer: the id of whoever asks, "" when nobody is signed in.
    """
    if number is None:
        return _refused("no order number", "R8", "To refund a charge we need the number of the order.")
    if order is None or (customer and order["customer"] != customer):
        return _refused("unknown order", "R8", "We found no order with that number under your name.")
    cents, what, claim, refusal = _amount(order, reason, terms)
    if refusal:
        return refusal
    if cents > terms.limit_cents:
        sentence = (
            f"{money(cents)} is above the {money(terms.limit_cents)} this desk may refund: a manager decides."
        )
        return Decision("manager", cents, f"{what}, above the limit", ("R6",), (sentence,), claim)
    rule = {"duplicate": "R1", "damaged": "R2", "late_delivery": "R3", "unwanted": "R4"}[reason]
    return Decision("due", cents, what, (rule, "R5"), (terms.rules[rule], terms.rules["R5"]), claim)


def claimed(decision: Decision, ticket: str) -> Decision:
    """The same charge was asked for in another ticket: refuse, and say where."""
    return _refused(
        "asked before", "R7", f"This charge is already being handled as ticket {ticket}.", decision.claim
    )


def _amount(order: Mapping[str, Any], reason: str, terms: Terms) -> tuple[int, str, str, Decision | None]:
    """What the reason is worth: (cents, words, claim, refusal or None)."""
    charges = order["charges"]
    claim = f"{order['order']}:{reason}"
    if reason == "duplicate":
        if len(charges) < 2:
            return (
                0,
                "",
                claim,
                _refused(
                    "charged once",
                    "R1",
                    f"Order {order['order']} was charged once, {money(charges[0]['cents'])}.",
                ),
            )
        asked_after = (terms.today - date.fromisoformat(order["placed"])).days
        if asked_after > terms.duplicate_days:
            return 0, "", claim, _too_late("R1", asked_after, terms.duplicate_days, "the order")
        what = "duplicate charge" if len(charges) == 2 else counted(len(charges) - 1, "surplus charge")
        return sum(c["cents"] for c in charges[1:]), what, claim, None
    if reason == "other":
        return (
            0,
            "",
            claim,
            _refused(
                "no ground", "R4", "Please tell us why: charged twice, damaged, late, or no longer wanted."
            ),
        )
    if order["delivered"] is None:
        return 0, "", claim, _refused("not delivered", "R4", f"Order {order['order']} is {order['status']}.")
    since = (terms.today - date.fromisoformat(order["delivered"])).days
    if since > terms.return_days:
        return 0, "", claim, _too_late("R4", since, terms.return_days, "delivery")
    if reason == "late_delivery":
        if order["delivered"] <= order["promised"]:
            return 0, "", claim, _refused("on time", "R3", f"It came on {order['delivered']}, as promised.")
        return order["delivery_cents"], "late delivery", claim, None
    return charges[0]["cents"], {"damaged": "came damaged", "unwanted": "sent back"}[reason], claim, None


def _refused(what: str, rule: str, sentence: str, claim: str = "") -> Decision:
    return Decision("refused", 0, what, (rule,), (sentence,), claim)


def _too_late(rule: str, days: int, allowed: int, since: str) -> Decision:
    return _refused(
        "too late", rule, f"You asked {counted(days, 'day')} after {since}; the policy allows {allowed}."
    )
