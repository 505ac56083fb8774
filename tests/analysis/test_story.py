"""A ticket's story is folded from the log: what belongs to it, what does not, what is dropped for reading."""

from desk.analysis.story import distinct, of_ticket, plain
from tests.analysis.samples import event, killed_in_the_hold


def kinds(story) -> list[str]:
    return [e["kind"] for e in story]


def test_the_death_that_hit_a_ticket_and_the_start_that_followed_are_part_of_its_story():
    story = of_ticket(killed_in_the_hold(), "t-1")
    assert kinds(story)[6:11] == ["holding", "killed", "agent_up", "replay", "asked"]


def test_a_death_after_the_process_was_done_with_the_ticket_is_not():
    story = of_ticket(killed_in_the_hold(), "t-1")
    assert kinds(story)[-1] == "closed"
    assert kinds(story).count("killed") == 1


def test_a_death_of_a_process_that_never_touched_the_ticket_is_not():
    events = [*killed_in_the_hold()[:9], event(1, "killed", "billing", 30, None, by="code")]
    assert "killed" not in kinds(of_ticket(events, "t-1"))


def test_another_ticket_keeps_its_own_story():
    assert kinds(of_ticket(killed_in_the_hold(), "t-2")) == ["triage"]


def test_an_event_written_again_after_a_kill_is_read_once():
    events = killed_in_the_hold()
    assert distinct([*events, events[3]]) == events


def test_a_text_without_its_process_ids():
    assert plain("resolver up (pid 4598, LLM mock)") == "resolver up"
    assert plain("killed resolver pid 4102 (SIGKILL, by demo)") == "killed resolver (SIGKILL, by demo)"
    assert plain("order 1042: two charges of $49.00") == "order 1042: two charges of $49.00"
    assert plain(None) == ""
