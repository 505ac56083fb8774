"""The report says what the numbers say: aims, ties, what is lost, where this desk is behind."""

from dataclasses import replace

from bench.rivals import report, results
from bench.rivals.counting import Chaos, Counts, Recovery
from bench.rivals.lines import Lines
from bench.rivals.results import OURS, System

ONCE = Counts(1, 1, 1, 1, 1, 1, 0)
ABOUT = {
    "repetitions": 2, "chaos runs": 1, "seed": 1, "versions": {"dbos": "3.4.0"}, "when": "2026-11-29", "took": 1.0,
    "cores": 2, "python": "3.11", "scheduling": "ordinary", "load before": "0.1", "load after": "0.2",
}  # fmt: skip


def system(first: float, after: float | None, durability: int) -> System:
    one = Recovery(first, first, first, first + 0.1, 1.0, ONCE)
    counts = Counts(20, 20 if after else 19, 20, 20, 21, 20 if after else 19, 0)
    return System(
        (one, one), (one, one), (Chaos(3, after, (1.0, 2.0), counts),), Lines(durability, durability, 0)
    )


def systems() -> dict[str, System]:
    return {
        OURS: system(0.04, 4.9, 150),
        "plain": system(0.06, 5.9, 0),
        "DBOS": system(0.5, 5.4, 23),
        "Restate": system(0.2, 5.0, 12),
    }


def test_aims_are_judged_against_the_numbers_and_name_the_best_rival() -> None:
    said = report.aims(systems())
    assert "0.040 s for an aim of 0.05 s: holds (best rival: Restate, 0.200 s" in said[0]
    assert "4.90 s in the slowest run" in said[1] and "holds" in said[1]
    assert said[2].endswith("holds.") and said[3].endswith("holds.")


def test_a_chaos_run_sooner_than_whole_holds_allow_is_said_to_be_cut_short() -> None:
    early = replace(systems()[OURS], chaos=system(0.04, 4.3, 1).chaos + systems()[OURS].chaos)
    said = report.aims({**systems(), OURS: early})[1]
    assert said.endswith("; 1 of its 2 runs took less than 4.8 s, because kills cut holds short.")
    assert "cut" not in report.aims(systems())[1]


def test_a_ticket_that_stayed_open_is_lost_and_the_run_never_over() -> None:
    measured = {**systems(), OURS: system(0.06, None, 150)}
    said = report.aims(measured)
    assert "misses" in said[0] and "misses" in said[1]
    assert "23 of 24 tickets closed, 23 payments: misses" in said[3]
    assert "| never |" in report.as_markdown(ABOUT, measured)


def test_who_is_ahead_is_named_and_who_is_not_is_not() -> None:
    said = "\n".join(report.behind(systems()))
    assert "150 for durability, Restate has 12" in said
    assert "ahead" not in said
    slow = replace(systems()[OURS], chaos=system(0.04, 5.6, 1).chaos)
    said = "\n".join(report.behind({**systems(), OURS: slow}))
    assert "Chaos: 5.60 s here; ahead: DBOS 5.40 s, Restate 5.00 s." in said
    assert "1 more requests to the bank than tickets" in said


def test_a_run_comes_back_from_its_file_as_it_was(tmp_path) -> None:
    file = tmp_path / "rivals.json"
    results.write(file, ABOUT, systems())
    assert results.read(file) == (ABOUT, systems())
