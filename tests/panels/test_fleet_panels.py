"""The panels of the delivery desk: what they show of a log, and that a button does one thing."""

import asyncio

from desk.analysis.handling import handlings
from desk.control.fleet_reading import Prompt
from desk.delivery.planning.round import Round
from desk.panels.desk_work import ApprovalsPanel, ParkedPanel, gateway_down
from desk.panels.events import EventsPanel, words
from desk.panels.exceptions import ExceptionsPanel
from desk.panels.incidents import BUSIEST, IncidentsPanel
from desk.panels.readers import QUESTIONS
from tests.panels.fleets import PaperFleet, tuesday_events


def buttons(widget) -> dict[str, object]:
    """Every button below a widget by its label."""
    found = {}
    for child in getattr(widget, "children", ()):
        if type(child).__name__ == "Button":
            found[child.description] = child
        found |= buttons(child)
    return found


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def test_an_incident_happens_to_the_chosen_van():
    fleet = PaperFleet()
    fleet.round_of = {"van-1": Round("van-1"), "van-2": Round("van-2", parked=True), "van-3": Round("van-3")}
    panel = IncidentsPanel(fleet)
    await panel.refresh()
    assert panel._van.options == (BUSIEST, "van-1", "van-3")
    buttons(panel)["Road closure"].click()
    await settle()
    panel._van.value = "van-3"
    buttons(panel)["Nobody home"].click()
    buttons(panel)["SMS gateway down"].click()
    await settle()
    assert fleet.asked == [("closure", ""), ("nobody_home", "van-3"), ("sms_down", "")]


async def test_the_slider_follows_the_vans_and_asks_only_when_a_person_moves_it():
    fleet = PaperFleet()
    fleet.round_of = {f"van-{n}": Round(f"van-{n}") for n in range(1, 5)}
    panel = IncidentsPanel(fleet)
    await panel.refresh()
    assert panel._slider.value == 4 and not fleet.asked
    panel._slider.value = 6
    await settle()
    assert fleet.asked == [("vans", 6)]


async def test_the_slider_stays_where_it_was_put_while_vans_hand_over():
    fleet = PaperFleet()
    fleet.round_of = {f"van-{n}": Round(f"van-{n}") for n in range(1, 5)}
    panel = IncidentsPanel(fleet)
    await panel.refresh()
    fleet.granting.clear()
    panel._slider.value = 2
    await settle()
    await panel.refresh()  # asked, not granted
    assert panel._slider.value == 2
    fleet.happen(
        *({"kind": "incident", "state": "removed", "van": f"van-{n}", "incident": f"tue-{n}"} for n in (3, 4))
    )
    fleet.granting.set()
    await settle()
    await panel.refresh()
    assert panel._slider.value == 2 and "van-3, van-4 must hand over first" in panel._leaving.value
    fleet.round_of |= {"van-4": Round("van-4", parked=True)}
    fleet.happen({"kind": "van_parked", "van": "van-4"})
    await panel.refresh()
    assert panel._slider.value == 2 and "van-3 must hand over first" in panel._leaving.value
    fleet.happen(
        {"kind": "moot", "van": "van-3", "incident": "tue-3", "text": "van-3 is home: it changes nothing"}
    )
    await panel.refresh()
    assert panel._slider.value == 3 and panel._leaving.layout.display == "none"
    assert fleet.asked == [("vans", 2)]


async def test_an_incident_that_changed_nothing_is_said():
    fleet = PaperFleet()
    fleet.round_of = {"van-1": Round("van-1")}
    panel = IncidentsPanel(fleet)
    buttons(panel)["Nobody home"].click()
    await settle()
    assert "tue-1: nobody home" in panel._said.value
    fleet.happen(
        {
            "kind": "moot",
            "incident": "tue-1",
            "van": "van-1",
            "text": "van-1 is off the road: nobody home changes nothing",
        }
    )
    await panel.refresh()
    assert "tue-1: van-1 is off the road: nobody home changes nothing" in panel._said.value


async def test_a_question_has_two_answers_and_goes_when_it_is_answered():
    fleet = PaperFleet()
    fleet.prompts = [Prompt("tue-bill", "Dispute $19.70?", 1970)]
    panel = ApprovalsPanel(fleet)
    await panel.refresh()
    kept = panel._row.children
    await panel.refresh()
    assert panel._row.children == kept
    buttons(panel)["Approve"].click()
    await settle()
    assert fleet.asked == [("approve", "tue-bill")]
    fleet.prompts = []
    await panel.refresh()
    assert not panel._row.children


async def test_parked_messages_and_the_button_that_sends_them():
    fleet = PaperFleet()
    panel = ParkedPanel(fleet)
    await panel.refresh()
    assert buttons(panel)["Fix and redrive"].disabled
    letter = {"step": "notify", "capsule": {"attempts": 3, "detail": "the gateway <is> down"}}
    fleet.letters = {f"tue-{n}": letter for n in range(6)}
    await panel.refresh()
    assert "3 attempts" in panel._letters.value and "&lt;is&gt;" in panel._letters.value
    assert "and 2 more" in panel._letters.value
    buttons(panel)["Fix and redrive"].click()
    await settle()
    assert fleet.asked == [("redrive",)]


async def test_an_exception_card_shows_who_has_the_step():
    fleet = PaperFleet()
    panel = ExceptionsPanel(fleet)
    await panel.refresh()
    assert "Nothing has happened yet" in panel._cards.value
    events = tuesday_events(99)
    dead = next(i for i, e in enumerate(events) if e["kind"] == "killed")
    fleet.happen(*events[:dead])
    await panel.refresh()
    assert "road closure, van-1" in panel._cards.value and "routing-2" in panel._cards.value
    assert [s.state for s in handlings(events[:dead])[0].steps] == ["done", "in hand", "waiting"]
    assert [s.state for s in handlings(events[: dead + 1])[0].steps] == ["done", "lost", "waiting"]
    done = handlings(tuesday_events(99))
    assert {s.state for h in done for s in h.steps} == {"done"} and not any(h.open for h in done)


async def test_an_open_exception_without_a_card_is_counted():
    fleet = PaperFleet()
    panel = ExceptionsPanel(fleet)
    opened = [
        {"id": f"e{n}", "kind": "exception", "incident": f"tue-{n}", "state": "unreachable", "van": f"van-{n}", "minute": 1.0}
        for n in range(1, 9)
    ]  # fmt: skip
    fleet.happen(*opened[:6])
    await panel.refresh()
    assert "more" not in panel._cards.value
    fleet.happen(*opened[6:])
    await panel.refresh()
    assert (
        panel._cards.value.count('class="desk-card ') == 6
        and "and 2 open exceptions more" in panel._cards.value
    )
    fleet.happen(
        {"id": "c1", "kind": "closed", "incident": "tue-1"},
        {"id": "c2", "kind": "closed", "incident": "tue-2"},
    )
    await panel.refresh()
    assert "more" not in panel._cards.value  # a closed one is never missed


def test_the_readers_ask_for_kills_and_for_replays():
    assert [title for title, _, _ in QUESTIONS[-3:]] == ["Steps done", "Kills", "Replays"]


async def test_filters_keep_what_was_asked_for():
    fleet = PaperFleet()
    fleet.happen(*tuesday_events(99))
    panel = EventsPanel(fleet)
    await panel.refresh()
    assert "drives to" not in panel._log.value
    panel._sort.value = "kills and recovery"
    await panel.refresh()
    assert "SIGKILL" in panel._log.value and "told" not in panel._log.value
    panel._agent.value = "customer"
    await panel.refresh()
    assert "SIGKILL" not in panel._log.value
    assert "passed over" not in panel._log.value
    fleet.log.foreign = 2
    await panel.refresh()
    assert "Not the desk's and passed over: 2." in panel._log.value


async def test_trouble_is_one_sentence_and_goes_away():
    fleet = PaperFleet()
    panel = ExceptionsPanel(fleet)

    def fail():
        raise RuntimeError("The stack is not there.\nsecond line")

    fleet.events = fail
    await panel._follow._run()
    assert "The stack is not there." in panel._problem.value and "second" not in panel._problem.value
    del fleet.events
    await panel._follow._run()
    assert "stack" not in panel._problem.value


async def test_the_gateway_is_down_from_its_failure_until_it_is_mended():
    failed, mended = {"kind": "incident", "state": "sms_down"}, {"kind": "fixed"}
    assert not gateway_down([{"kind": "incident", "state": "closure"}])
    assert gateway_down([failed]) and gateway_down([failed, mended, failed])
    assert not gateway_down([failed, mended])


async def test_why_a_click_did_nothing_is_shown_for_a_while_and_what_is_the_matter_until_it_is_over(
    monkeypatch,
):
    monkeypatch.setattr("desk.panels.frame.LINGER", 0.01)
    panel = ParkedPanel(PaperFleet())
    panel.slip("The last one of a skill stays.")
    assert "The last one of a skill stays." in panel._problem.value
    await asyncio.sleep(0.05)
    assert panel._problem.layout.display == "none"
    panel.slip("The last one of a skill stays.")
    panel.problem("The stack is not there.")
    await asyncio.sleep(0.05)
    assert "The stack is not there." in panel._problem.value and panel._problem.layout.display is None


def test_a_steps_words_name_the_step_once():
    assert words({"step": "notify", "text": "3 customers told"}) == "notify: 3 customers told"
    assert words({"step": "notify", "text": "notify of tue-1"}) == "notify of tue-1"
    assert words({"text": "bill opened"}) == "bill opened" and words({}) == ""


async def test_a_log_that_cannot_be_read_is_said_in_every_panel_that_follows_it():
    fleet = PaperFleet()
    panels = [
        kind(fleet) for kind in (ExceptionsPanel, ApprovalsPanel, ParkedPanel, IncidentsPanel, EventsPanel)
    ]
    for hearer in fleet.hearers:
        hearer("The log cannot be read (Disconnected): what is shown is how things stood.")
    assert all("The log cannot be read" in panel._problem.value for panel in panels)
    for hearer in fleet.hearers:
        hearer("")
    assert all(panel._problem.layout.display == "none" for panel in panels)
