"""A ticket's story is folded from the log: what belongs to it, what does not, what is dropped for reading."""

from desk.analysis.story import distinct, last_words_first, of_ticket, plain
from tests.analysis.samples import WORK, event, killed_in_the_hold


def kinds(story) -> list[str]:
    return [e["kind"] for e in story]


def test_the_death_that_hit_a_ticket_and_the_start_that_followed_are_part_of_its_story():
    story = of_ticket(killed_in_the_hold(), "t-1")
    assert kinds(story)[6:11] == ["holding", "killed", "agent_up", "replay", "asked"]


def test_a_death_after_the_process_was_done_with_the_ticket_is_not():
    story = of_ticket(killed_in_the_hold(), "t-1")
    assert [(e["agent"], e["pid"]) for e in story if e["kind"] == "killed"] == [("resolver", 20)]


def test_a_death_of_a_process_that_never_touched_the_ticket_is_not():
    events = [*killed_in_the_hold()[:9], event(1, "killed", "billing", 30, by="code")]
    assert "killed" not in kinds(of_ticket(events, "t-1"))


def test_another_ticket_keeps_its_own_story():
    assert kinds(of_ticket(killed_in_the_hold(), "t-2")) == ["triage", "killed"]


def test_of_two_issues_in_one_process_the_one_that_is_not_done_is_hit():
    other = "t-1:resolve-2"
    events = [
        event(1, "looking_up", "resolver", 20, WORK),
        event(2, "looking_up", "resolver", 20, other),
        event(3, "done", "resolver", 20, WORK),
        event(4, "killed", "resolver", 20),
        event(5, "agent_up", "resolver", 21),
    ]
    assert kinds(of_ticket(events, "t-1"))[2:] == ["killed", "agent_up"]


def test_a_handoff_comes_before_what_came_of_it_whoever_wrote_first():
    story = kinds(of_ticket(killed_in_the_hold(), "t-1"))
    assert story[:4] == ["opened", "triage", "handoff", "looking_up"]


def test_a_death_stands_behind_the_last_words_of_its_process_and_before_those_of_the_next():
    events = [
        event(1, "looking_up", "resolver", 20, WORK),
        event(2, "killed", "resolver", 20),
        event(2.01, "lookup", "resolver", 20, WORK),
        event(2.02, "holding", "resolver", 20, WORK),
        event(2.03, "agent_up", "resolver", 21),
        event(2.04, "replay", "resolver", 21, WORK),
    ]
    expected = ["looking_up", "lookup", "holding", "killed", "agent_up", "replay"]
    assert kinds(of_ticket(events, "t-1")) == expected
    assert kinds(last_words_first([*events[:2], {**events[1], "pid": None}, *events[2:]]))[3:] == [
        "killed",
        *expected[3:],
    ]


def test_two_handoffs_stand_together_though_the_first_was_taken_up_in_between():
    events = [
        event(1, "triage", "triage", 10, "t-1"),
        event(2, "handoff", "triage", 10, "t-1", state=WORK),
        event(3, "looking_up", "resolver", 20, WORK),
        event(4, "handoff", "triage", 10, "t-1", state="t-1:resolve-2"),
    ]
    assert kinds(of_ticket(events, "t-1")) == ["triage", "handoff", "handoff", "looking_up"]


def test_an_event_written_again_after_a_kill_is_read_once():
    events = killed_in_the_hold()
    assert distinct([*events, events[3]]) == events


def test_a_text_without_its_process_ids():
    assert plain("resolver up (pid 4598, LLM mock)") == "resolver up"
    assert plain("killed resolver pid 4102 (SIGKILL, by demo)") == "killed resolver (SIGKILL, by demo)"
    assert plain("order 1042: two charges of $49.00") == "order 1042: two charges of $49.00"
    assert plain(None) == ""
