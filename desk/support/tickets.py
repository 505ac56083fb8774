"""Tickets to try the desk with: scenarios as data, and the names and keys derived from a ticket.

A key is `ticket:handoff`, never a clock, a process or the ticket alone: "t-1:resolve-1", "t-1:resolve-1:refund".
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from desk.support.world import World

SPARE_ORDERS = tuple(str(number) for number in range(1101, 1301))
"""Each charged twice. A charge is refunded once, so every opening takes another; five are for tickets sent twice."""


class TicketError(ValueError):
    """A ticket that cannot be opened. Its text is one sentence for a person."""


@dataclass(frozen=True)
class Scenario:
    """A message to open a ticket with. orders: the order numbers `{order}` stands for, one for each time it is opened;
    outcome: how the case ends if a person approves: "refunded", "refused", "manager", "answered" or "unclear";
    issues: how many handoffs it makes; twice: the same ticket is sent two times.
    """

    name: str
    text: str
    customer: str
    outcome: str
    orders: tuple[str, ...] = ()
    issues: int = 1
    twice: bool = False


SCENARIOS: Mapping[str, Scenario] = {
    s.name: s
    for s in (
        Scenario("duplicate", "Order {order} was charged twice, please refund one", "c-17", "refunded", ("1042", *SPARE_ORDERS[:35], *SPARE_ORDERS[40:])),
        Scenario("not_due", "Order 1044 was charged twice, please refund one.", "c-5", "refused"),
        Scenario("late", "I was charged twice for order 1045. Please refund one charge.", "c-8", "refused"),
        Scenario("above_limit", "Order 1046 was charged twice. I want my money back.", "c-11", "manager"),
        Scenario("damaged", "The knife of order 1047 came damaged. Please refund it.", "c-12", "refunded"),
        Scenario("unknown_order", "Order 9999 was charged twice, please refund one.", "c-4", "refused"),
        Scenario("no_order", "You charged me twice, please refund one of the charges.", "c-6", "refused"),
        Scenario("question", "How long does delivery take, and where is order 1051?", "c-3", "answered"),
        Scenario(
            "two_issues",
            "Order 1043 was charged twice, please refund one. Also, where is order 1051?",
            "c-3",
            "refunded",
            issues=2,
        ),
        Scenario("empty", "", "c-7", "unclear"),
        Scenario("huge", "Please read all of this very carefully. " * 1_280, "c-9", "unclear"),
        Scenario("german", "Guten Tag, meine Bestellung wurde zweimal abgebucht, bitte um Hilfe.", "c-10", "unclear"),
        Scenario("sql", "Please refund order 1042'; DROP TABLE orders;-- it was charged twice", "c-13", "refused"),
        Scenario("twice", "Order {order} was charged twice, please refund one", "c-17", "refunded",
                 SPARE_ORDERS[35:40], twice=True),
    )
}  # fmt: skip


def message(scenario_or_text: str, opened: int, world: World) -> tuple[str, str, Scenario | None]:
    """(text, customer id, scenario) for a scenario's name or a customer's own words.

    opened: how often this scenario was opened before, so that each opening is about another order.
    Raises TicketError for something that is not text, or a word that is nearly a scenario's name.
    """
    if not isinstance(scenario_or_text, str):
        raise TicketError(
            f"A ticket is opened with text or one of the scenarios {', '.join(SCENARIOS)}, "
            f"not with {type(scenario_or_text).__name__}."
        )
    scenario = SCENARIOS.get(scenario_or_text)
    if scenario is None:
        meant = _meant(scenario_or_text)
        if meant:
            raise TicketError(
                f"There is no scenario {scenario_or_text!r}: did you mean {meant}? "
                "A customer's own words are more than one."
            )
        return scenario_or_text, "", None
    if not scenario.orders:
        return scenario.text, scenario.customer, scenario
    order = scenario.orders[opened % len(scenario.orders)]
    return scenario.text.format(order=order), world.orders[order]["customer"], scenario


def _meant(text: str) -> str:
    """The scenario a single word was probably meant to name, or ""."""
    if not re.fullmatch(r"[\w-]{3,20}", text):
        return ""
    near = difflib.get_close_matches(text.lower().replace("-", "_"), SCENARIOS, 1, 0.8)
    return near[0] if near else ""
