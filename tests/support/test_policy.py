"""When a refund is due, with plain values."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from desk.support.policy import Decision, Terms, claimed, decide, money

TERMS = Terms(date(2026, 11, 29), 20_000, 180, 30, {f"R{n}": f"rule {n}" for n in range(1, 9)})


def order(**changes: Any) -> dict[str, Any]:
    return {
        "order": "1042",
        "customer": "c-17",
        "item": "teapot",
        "placed": "2026-11-12",
        "promised": "2026-11-18",
        "delivered": "2026-11-16",
        "status": "delivered",
        "delivery_cents": 500,
        "charges": [{"id": "a", "cents": 4900, "on": "2026-11-12"}, {"id": "b", "cents": 4900, "on": "2026-11-12"}],
        **changes,
    }  # fmt: skip


def about(record: dict[str, Any] | None, reason: str = "duplicate", customer: str = "c-17") -> Decision:
    return decide(record, "1042", reason, customer, TERMS)


ONCE = [{"id": "a", "cents": 4900, "on": "2026-11-12"}]


def test_a_duplicate_charge_is_due() -> None:
    decision = about(order())
    assert (decision.outcome, decision.cents, decision.rules) == ("due", 4900, ("R1", "R5"))
    assert decision.claim == "1042:duplicate" and decision.reasons == ("rule 1", "rule 5")


def test_all_surplus_charges_are_due() -> None:
    assert about(order(charges=[*order()["charges"], {"id": "c", "cents": 100, "on": ""}])).cents == 5000


@pytest.mark.parametrize(
    ("record", "reason", "what"),
    [
        (order(charges=ONCE), "duplicate", "charged once"),
        (order(placed="2026-05-01"), "duplicate", "too late"),
        (order(delivered="2026-10-29"), "damaged", "too late"),
        (order(delivered="2026-10-29"), "unwanted", "too late"),
        (order(), "late_delivery", "on time"),
        (order(delivered=None, status="on its way"), "damaged", "not delivered"),
        (order(), "other", "no ground"),
        (None, "duplicate", "unknown order"),
    ],
)
def test_refused_with_a_reason(record: dict[str, Any] | None, reason: str, what: str) -> None:
    decision = about(record, reason)
    assert (decision.outcome, decision.cents, decision.what) == ("refused", 0, what)
    assert len(decision.reasons) == 1 and decision.reasons[0].endswith(".")


def test_without_a_number_it_asks_for_one() -> None:
    decision = decide(None, None, "duplicate", "c-17", TERMS)
    assert (decision.outcome, decision.what) == ("refused", "no order number")


def test_another_customers_order_is_as_unknown_as_none() -> None:
    assert about(order(), customer="c-1") == about(None)


def test_nobody_signed_in_is_not_another_customer() -> None:
    assert about(order(), customer="").outcome == "due"


@pytest.mark.parametrize(("cents", "outcome"), [(20_000, "due"), (20_001, "manager")])
def test_the_limit_is_inclusive(cents: int, outcome: str) -> None:
    assert about(order(charges=[*ONCE, {"id": "b", "cents": cents, "on": ""}])).outcome == outcome


@pytest.mark.parametrize(("delivered", "outcome"), [("2026-10-30", "due"), ("2026-10-29", "refused")])
def test_the_window_is_inclusive(delivered: str, outcome: str) -> None:
    assert about(order(delivered=delivered), "damaged").outcome == outcome


def test_a_late_parcel_returns_the_delivery_fee() -> None:
    decision = about(order(delivered="2026-11-20"), "late_delivery")
    assert (decision.outcome, decision.cents) == ("due", 500)


def test_a_charge_claimed_by_another_ticket_is_refused() -> None:
    decision = claimed(about(order()), "t-1")
    assert (decision.outcome, decision.rules) == ("refused", ("R7",)) and "t-1" in decision.reasons[0]


def test_a_decision_is_a_value() -> None:
    assert replace(about(order())) == about(order())


def test_money() -> None:
    assert [money(c) for c in (5, 4900, 123_456_700)] == ["$0.05", "$49.00", "$1,234,567.00"]
