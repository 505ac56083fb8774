"""Which kills hit a ticket is judged from the log alone, and judged right."""

import pytest

from desk.analysis.story import DEATHS, of_ticket
from desk.control.support import SupportDesk

pytestmark = pytest.mark.asyncio(loop_scope="module")


def kills(support: SupportDesk, ticket: str) -> list[str]:
    return [event["agent"] for event in of_ticket(support.events(), ticket) if event["kind"] in DEATHS]


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("triage", "triage"),
        ("resolver", "looking_up"),
        ("resolver", "asked"),
        ("billing", "paid"),
        ("billing", "closed"),
    ],
)
async def test_a_kill_at_work_is_in_its_tickets_timeline_and_in_no_other(
    support: SupportDesk, name: str, at: str
) -> None:
    parked = await support.run("duplicate", answer=None)
    done = await support.run("question")
    hit = await support.run("duplicate", kill=name, at=at)
    await support.run("question")  # the dead agent's last word on `parked` and `done` is on the log by now
    assert kills(support, hit) == [name]
    assert kills(support, parked) == kills(support, done) == []


async def test_an_idle_agent_may_be_killed_without_hitting_anybody(support: SupportDesk) -> None:
    ticket = await support.run("question")
    await support.run("question")
    for name in ("triage", "resolver", "billing"):
        await support.kill(name)
    await support.run("question")
    assert kills(support, ticket) == []
