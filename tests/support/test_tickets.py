"""The world the desk is tried in: data that fits together, scenarios that end as they say."""

import re

import pytest

from desk.support import policy, world
from desk.support.reading import read
from desk.support.tickets import SCENARIOS, Scenario, TicketError, message

WORLD = world.load()


def test_the_data_fits_together() -> None:
    assert len(WORLD.orders) >= 30
    for number, order in WORLD.orders.items():
        assert order["order"] == number and re.fullmatch(r"\d{4}", number)
        assert order["customer"] in WORLD.customers
        assert order["charges"] and all(type(c["cents"]) is int and c["cents"] > 0 for c in order["charges"])
    assert all(customer["history"] for customer in WORLD.customers.values())
    assert WORLD.knowledge and set(WORLD.terms.rules) == {f"R{n}" for n in range(1, 9)}


def test_the_duplicate_scenario_is_the_article() -> None:
    text, customer, scenario = message("duplicate", 0, WORLD)
    assert (text, customer) == ("Order 1042 was charged twice, please refund one", "c-17")
    assert [charge["cents"] for charge in WORLD.orders["1042"]["charges"]] == [4900, 4900]
    assert scenario and scenario.outcome == "refunded"


def test_each_opening_of_duplicate_is_about_another_order() -> None:
    texts = {message("duplicate", opened, WORLD)[0] for opened in range(150)}
    assert len(texts) == 150


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_reading_and_policy_lead_where_the_scenario_says(scenario: Scenario) -> None:
    for opened in range(max(1, len(scenario.orders))):
        text, customer, _ = message(scenario.name, opened, WORLD)
        wishes = read(text)
        assert len(wishes) == scenario.issues
        wish = wishes[0]
        if wish.kind == "refund":
            order = WORLD.orders.get(wish.order or "")
            decision = policy.decide(order, wish.order, wish.reason, customer, WORLD.terms)
            outcome = {"due": "refunded"}.get(decision.outcome, decision.outcome)
        else:
            outcome = {"question": "answered", "unclear": "unclear"}[wish.kind]
        assert outcome == scenario.outcome


def test_a_customers_own_words_are_taken_as_they_are() -> None:
    assert message("Where is order 1051?", 0, WORLD) == ("Where is order 1051?", "", None)


@pytest.mark.parametrize("slip", ["duplicat", "Duplicate", "two-issues", "dupplicate", "questions"])
def test_a_slip_in_a_scenarios_name_is_not_a_customers_letter(slip: str) -> None:
    with pytest.raises(TicketError, match=f"There is no scenario '{slip}': did you mean "):
        message(slip, 0, WORLD)


@pytest.mark.parametrize("word", ["help", "refund", "Hallo", "1042", "xyzzy"])
def test_one_word_may_be_all_a_customer_writes(word: str) -> None:
    assert message(word, 0, WORLD)[0] == word


def test_what_is_not_text_is_refused_in_a_sentence() -> None:
    with pytest.raises(TicketError, match=r"with text or one of the scenarios duplicate, .* not with int"):
        message(1042, 0, WORLD)
