"""Times and counts come from the notes and the bank's book alone, repeats included."""

import json

from bench.rivals.counting import Counts, chaos, count, recovery
from bench.rivals.outside import Note, Outside, parse

OLD, NEW = 10, 20
COUNTS = Counts(1, 1, 1, 1, 1, 1, 0)


def notes(*rows: tuple[float, int, str]) -> list[Note]:
    return [Note(at, pid, "" if what == "up" else "t-1", what) for at, pid, what in rows]


def test_a_repeat_counts_again_and_other_tickets_do_not() -> None:
    book = [*notes((1, OLD, "lookup"), (2, NEW, "lookup"), (3, NEW, "asked")), Note(4, NEW, "t-11", "lookup")]
    asked = ["t-1:refund", "t-1:refund", "t-11:refund"]
    assert count("t-1", book, asked, ["t-1:refund"]) == Counts(1, 0, 2, 1, 2, 1, 0)
    assert count("t-1", book, asked, asked).paid_twice == 1


def test_after_a_kill_a_step_is_new_only_if_it_had_not_been_completed() -> None:
    killed = 100.0
    book = notes(
        (1, OLD, "up"), (99, OLD, "done:lookup"), (99.7, OLD, "hold"),
        (100.1, NEW, "up"), (100.2, NEW, "begun"), (100.3, NEW, "done:lookup"), (100.9, NEW, "done:hold"),
        (101, NEW, "closed"),
    )  # fmt: skip
    one = recovery("t-1", book, killed, COUNTS)
    assert [round(value, 3) for value in (one.up, one.first, one.step, one.closed, one.held)] == [
        0.1, 0.2, 0.9, 1.0, 1.2,
    ]  # fmt: skip
    assert one.closed_if_held == one.closed


def test_a_hold_that_was_cut_short_is_added_to_the_whole() -> None:
    book = notes((99.7, OLD, "hold"), (100.05, NEW, "done:hold"), (100.1, NEW, "closed"))
    one = recovery("t-1", book, 100.0, COUNTS)
    assert round(one.closed_if_held, 3) == 0.75


def test_what_never_came_is_no_time() -> None:
    one = recovery("t-1", notes((99.7, OLD, "hold")), 100.0, COUNTS)
    assert one == type(one)(None, None, None, None, None, COUNTS)
    assert one.closed_if_held is None


def test_chaos_is_over_only_when_every_ticket_is_closed() -> None:
    book = [Note(3.0, NEW, "t-1", "closed"), Note(3.5, NEW, "t-1", "closed"), Note(4.0, NEW, "t-2", "closed")]
    opened = {"t-1": 1.0, "t-2": 1.2}
    one = chaos(opened, book, 2, COUNTS)
    assert (one.after, one.latency) == (3.0, (2.0, 2.8))
    assert chaos({**opened, "t-3": 1.4}, book, 2, COUNTS).after is None


def test_the_book_outside_is_whole_lines_and_the_bank_pays_a_key_once(tmp_path) -> None:
    outside = Outside(tmp_path)
    outside.look_up("t-1")
    outside.pay("t-1", "t-1:refund")
    outside.pay("t-1", "t-1:refund")
    assert [note.what for note in outside.notes()] == ["lookup", "paid", "paid"]
    assert outside.bank.asked() == ["t-1:refund"] * 2
    assert len(outside.bank.payments()) == 1
    assert parse([json.dumps(vars(outside.notes()[0]))]) == outside.notes()[:1]
