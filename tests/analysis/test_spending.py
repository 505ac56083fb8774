"""Costs count repeats; times are between the events of one ticket, up to its end."""

from types import SimpleNamespace
from typing import Any

import pytest

from desk.analysis.spending import durations, latency_plot, spent

EVENTS: list[dict[str, Any]] = [
    {"id": str(n), "kind": kind, "agent": agent, "ticket": ticket, "at": at}
    for n, (kind, agent, ticket, at) in enumerate(
        [
            ("triage", "triage", "t-1", 1.0),
            ("looking_up", "resolver", "t-1", 1.5),
            ("looking_up", "resolver", "t-2", 1.6),
            ("looking_up", "resolver", "t-1", 3.5),
            ("approved", "resolver", "t-1", 9.0),
            ("closed", "billing", "t-1", 9.25),
            ("remembered", "memory", "t-1", 60.0),
        ]
    )
]


def of(ticket: str | None = None) -> list[dict[str, Any]]:
    return [event for event in EVENTS if ticket in (None, event["ticket"])]


SUPPORT: Any = SimpleNamespace(events=of)


def test_a_step_that_was_done_twice_is_paid_twice() -> None:
    table = spent(SUPPORT, ["t-1"], {"looking_up": 5, "closed": 2, "paid": 25}).table
    assert list(table["times"]) == [2, 1, 0, 3]
    assert table.loc["together", "cents"] == 12


def test_the_time_of_a_step_is_since_the_tickets_event_before_it() -> None:
    table = durations(EVENTS, ["t-1"])
    assert list(table["step"]) == ["looking_up", "looking_up", "closed"]  # no person, nothing after the end
    assert list(table["ms"]) == pytest.approx([500, 2000, 250])


def test_the_picture_says_what_it_shows() -> None:
    assert repr(latency_plot(SUPPORT, ["t-1"])).startswith("Each dot is a step of one ticket")
