"""Counts, recoveries, turns and stored values: the tables that lessons end on."""

import json
import math
from types import SimpleNamespace

from desk.analysis.counting import counts
from desk.analysis.kept import readable
from desk.analysis.recovery import recoveries, recovery_chart
from desk.analysis.sheet import Sheet
from desk.analysis.turns import sheet
from desk.control.questions import Counts
from tests.analysis.samples import WORK, event, killed_in_the_hold

ONCE = Counts(looked_up=1, held=1, asked=1, asked_raw=2, replied=1, replied_raw=1, bank_asked=2, paid=1)


def desk() -> SimpleNamespace:
    return SimpleNamespace(counts=lambda ticket: ONCE)


def turn(offset: int, display: str, **envelope: str) -> SimpleNamespace:
    message = SimpleNamespace(id=f"4:{offset}", envelope=envelope)
    return SimpleNamespace(display=display, message=message)


def test_counts_of_one_ticket_of_several_and_by_label():
    assert list(counts(desk(), "t-1").table.index) == ["t-1"]
    assert list(counts(desk(), ["t-1", "t-2"]).table.index) == ["t-1", "t-2"]
    labelled = counts(desk(), {"both": ["t-1", "t-2"], "one": "t-3"}).table
    assert labelled.loc["both"].to_dict()["paid"] == 2
    assert labelled.loc["one"].to_dict() == {
        "looked up": 1, "held": 1, "asked a person": 1, "asked the bank": 2, "paid": 1,
    }  # fmt: skip


def test_raw_counts_stand_beside_those_by_key():
    table = counts(desk(), "t-1", raw=True).table
    assert table.loc["t-1", "asked a person"] == 1
    assert table.loc["t-1", "questions written"] == 2


def test_two_desks_in_one_table():
    both = counts(desk(), {"shipped": "t-1"}) + counts(desk(), {"baseline": "t-1"})
    assert list(both.table.index) == ["shipped", "baseline"]


def test_a_recovery_is_until_the_next_process_is_up_and_until_the_ticket_goes_on():
    table = recoveries(killed_in_the_hold())
    hit = table[(table["agent"] == "resolver") & (table["by"] == "button")].iloc[0]
    assert round(hit["up"], 3) == 0.03
    assert round(hit["working"], 3) == 0.05


def test_a_kill_that_hit_no_ticket_has_no_working_time():
    table = recoveries(killed_in_the_hold())
    idle = table[(table["agent"] == "resolver") & (table["by"] == "chaos")].iloc[0]
    assert round(idle["up"], 3) == 0.1
    assert math.isnan(idle["working"])


def test_the_last_words_of_the_dead_are_no_recovery():
    events = [
        event(0, "looking_up", "resolver", 20, WORK),
        event(1, "killed", "resolver", 20, by="chaos"),
        event(1.001, "checkpoint", "resolver", 20, WORK),
        event(1.1, "agent_up", "resolver", 21),
        event(1.2, "replay", "resolver", 21, WORK),
    ]
    [row] = recoveries(events).to_dict("records")
    assert round(row["working"], 3) == 0.2
    finished = [
        event(1.001, "done", "resolver", 20, WORK) if e["kind"] == "checkpoint" else e for e in events[:4]
    ]
    assert math.isnan(recoveries(finished).iloc[0]["working"])


def test_work_lost_by_a_process_that_died_before_it_took_it_up_again_counts_from_the_last_kill():
    events = [
        event(0, "looking_up", "resolver", 20, WORK),
        event(1, "killed", "resolver", 20, by="chaos"),
        event(1.1, "agent_up", "resolver", 21),
        event(1.2, "killed", "resolver", 21, by="chaos"),
        event(1.3, "agent_up", "resolver", 22),
        event(1.5, "replay", "resolver", 22, WORK),
    ]
    first, second = recoveries(events).to_dict("records")
    assert math.isnan(first["working"])
    assert round(second["working"], 3) == 0.3


def test_words_for_who_does_not_see_the_recovery_chart():
    assert recovery_chart(killed_in_the_hold()).words == (
        "resolver: 2 deaths, up again after 30 to 100 ms (2 times), the work going on after 50 ms; "
        "triage: 1 death, nothing on the log says when it was up again."
    )
    assert recovery_chart([]).words == "Nobody died."


def test_the_recovery_chart_has_a_caption_and_survives_having_nothing_to_show():
    assert "ring" in repr(recovery_chart(killed_in_the_hold()))
    assert recovery_chart([])._repr_mimebundle_()[0]["image/png"]


def test_the_line_lies_between_the_turns_before_the_checkpoint_and_those_since():
    before = [turn(2, "agent.message", operation="resolve", source="triage", target="resolver")]
    since = [turn(3, "tool.call", tool="order_lookup", source="resolver", target="resolver")]
    table = sheet(before, since, ruled=True).table
    assert list(table["turn"]) == ["agent.message", "checkpoint here", "tool.call"]
    assert list(table.index) == ["2", "", "3"]
    assert list(table["what"]) == ["resolve", "", "order_lookup"]
    assert 'class="line"' in sheet(before, since, ruled=True)._repr_html_()
    assert "checkpoint here" not in repr(sheet(before, since, ruled=False))


def test_stored_values_in_words():
    per_topic = {"per_topic": {"agent.sessions": {"0": 0, "4": 3}}}
    assert readable(json.dumps({"cp": json.dumps(per_topic)}).encode()) == "agent.sessions: next offset 3"
    assert readable(b'{"state": "done", "cents": 4900}') == "state: done, cents: 4900"
    assert readable(b'"blue"') == "blue"


def test_an_empty_table_says_so():
    empty = counts(desk(), {})
    assert repr(empty) == empty._repr_html_() == "nothing yet"
    assert isinstance(empty, Sheet)
