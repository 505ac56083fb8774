"""What a panel shows and what its buttons ask for; it is updated in place and can be shown again."""

import asyncio

import ipywidgets as widgets
import pytest

from desk import panels
from desk.control import start
from desk.control.errors import DeskError
from tests.analysis.samples import WORK, event, killed_in_the_hold
from tests.panels.standing import StandIn

ASKED = {"order": "1042", "customer": "c-17", "cents": 4900, "what": "duplicate charge"}


def parts(widget: widgets.Widget) -> list[widgets.Widget]:
    """A widget and everything in it."""
    return [widget, *(part for child in getattr(widget, "children", ()) for part in parts(child))]


def words(widget: widgets.Widget) -> str:
    """All the HTML in a panel, except its style sheet."""
    found = [p.value for p in parts(widget) if isinstance(p, widgets.HTML) and p.layout.display != "none"]
    return "\n".join(text.partition("</style>")[2] or text for text in found)


def buttons(widget: widgets.Widget, label: str) -> list[widgets.Button]:
    return [p for p in parts(widget) if isinstance(p, widgets.Button) and p.description == label]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def desk() -> StandIn:
    support = StandIn()
    support.supervisor.tell("stack", 9)
    support.supervisor.tell("triage", 10)
    support.supervisor.tell("resolver", 20)
    return support


async def test_one_card_an_agent_and_none_for_the_stack(desk):
    shown = words(panels.agents(desk))
    assert "triage" in shown and "resolver" in shown and "stack" not in shown
    assert "pid 20" in shown and "0 deaths" in shown
    assert repr(panels.agents(desk)) == "Agents: triage, resolver"


async def test_a_death_and_a_new_pid_show_without_any_widget_being_replaced(desk):
    panel = panels.agents(desk)
    before = parts(panel)
    desk.supervisor.tell("resolver", 0, "down", 1)
    assert "no process" in words(panel) and "down" in words(panel)
    desk.supervisor.tell("resolver", 21, "up", 1)
    assert "pid 21" in words(panel) and "1 death<" in words(panel)
    assert parts(panel) == before


async def test_kill_is_asked_for_by_the_button_and_off_while_there_is_no_process(desk):
    panel = panels.agents(desk)
    resolver = buttons(panel, "Kill")[1]
    resolver.click()
    await settle()
    assert desk.done == [("kill", "resolver", "button")]
    triage = buttons(panel, "Kill")[0]
    desk.supervisor.tell("triage", 0, "failing", 5, "ImportError: no module named x")
    assert triage.disabled
    assert "ImportError" in words(panel)


async def test_the_monkey_is_let_loose_and_caught_by_one_button(desk):
    panel = panels.agents(desk)
    buttons(panel, "Start chaos")[0].click()
    await settle()
    assert desk.done == [("chaos", True)]
    assert len(buttons(panel, "Stop chaos")) == 1


async def test_a_monkey_let_loose_by_code_can_be_caught_by_the_button(desk):
    panel = panels.agents(desk)
    await desk.chaos(True)
    assert len(buttons(panel, "Stop chaos")) == 1
    buttons(panel, "Stop chaos")[0].click()
    await settle()
    assert desk.done == [("chaos", True), ("chaos", False)]
    assert len(buttons(panel, "Start chaos")) == 1


async def test_a_desk_with_a_panel_can_be_stopped(tmp_path):
    support = await start("support", data=tmp_path)
    panel = panels.agents(support)
    await support.stop()
    assert "stopped" in words(panel) and "up<" not in words(panel)


async def test_what_went_wrong_is_one_sentence_in_the_panel(desk):
    panel = panels.agents(desk)
    desk.trouble = DeskError("The supervisor has ended: start the desk again.")
    buttons(panel, "Kill")[0].click()
    await settle()
    assert "The supervisor has ended: start the desk again." in words(panel)


async def test_a_panel_asked_for_again_is_the_same_one_and_another_desk_has_its_own(desk):
    assert panels.agents(desk) is panels.agents(desk)
    assert panels.ticket(desk) is panels.ticket(desk)
    assert panels.agents(desk) is not panels.agents(StandIn())


async def test_a_ticket_is_opened_by_scenario(desk):
    panel = panels.ticket(desk)
    dropdown = next(p for p in parts(panel) if isinstance(p, widgets.Dropdown))
    dropdown.value = "question"
    buttons(panel, "Open ticket")[0].click()
    await settle()
    assert desk.done == [("open", "question")]


async def test_a_question_comes_with_approve_and_decline_and_goes_with_the_answer(desk):
    panel = panels.ticket(desk)
    assert buttons(panel, "Approve") == []
    desk.write(event(1, "asked", "resolver", 20, WORK, text="refund of $49.00 due", **ASKED))
    assert "refund of $49.00 due" in words(panel)
    buttons(panel, "Approve")[0].click()
    await settle()
    assert desk.done == [("approve", "t-1", "person")]
    desk.write(event(2, "approved", "resolver", 20, WORK, by="person"))
    assert buttons(panel, "Approve") == []


async def test_a_second_question_leaves_the_first_ones_buttons_alone(desk):
    panel = panels.ticket(desk)
    desk.write(event(1, "asked", "resolver", 20, WORK, **ASKED))
    first = buttons(panel, "Decline")
    desk.write(event(2, "asked", "resolver", 20, "t-2:resolve-1", **ASKED))
    assert buttons(panel, "Decline")[0] is first[0]
    assert len(buttons(panel, "Decline")) == 2


async def test_the_newest_tickets_timeline_is_shown_and_an_older_one_can_be_chosen(desk):
    panel = panels.ticket(desk)
    desk.write(*(e for e in killed_in_the_hold() if e["kind"] != "asked"))
    choice = [p for p in parts(panel) if isinstance(p, widgets.Dropdown)][1]
    assert (choice.options, choice.value) == (("t-1", "t-2"), "t-2")
    choice.value = "t-1"
    assert "✕ killed" in words(panel) and "○ replay" in words(panel)
    assert "mathjax_ignore" in words(panel)


async def test_the_same_again_sends_nothing(desk):
    panel = panels.ticket(desk)
    desk.write(event(1, "triage", "triage", 10, "t-1"))
    sent = []
    for part in parts(panel):
        part.observe(lambda change: sent.append(change), names=["value", "children", "options"])
    panel.refresh()
    assert sent == []
