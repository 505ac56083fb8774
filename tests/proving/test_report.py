"""The judges' independence, and the pure parts of a sweep: sampling, rows, report."""

import ast
import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from desk.proving import day_invariants, invariants, report
from desk.proving.__main__ import main, still
from desk.proving.cases import ANSWERED, HUNG, ONCE, STOPPED, TWICE, Case, Kill, Row
from desk.proving.frames import Write
from desk.proving.plays import DAYS, DELIVERY, PLAYS, SUPPORT
from desk.proving.relay import AFTER, ANY, BEFORE, KEPT, Point, Relay
from desk.proving.rows import CodeChanged, Rows, code, refusal
from desk.proving.stage import done
from desk.proving.sweep import most, sample, spread, stopped, twice


@pytest.mark.parametrize("judge", [invariants, day_invariants])
def test_the_judge_imports_nothing_of_the_desk(judge) -> None:
    tree = ast.parse(Path(judge.__file__).read_text())
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert modules and not any(module.startswith("desk") for module in modules)


def row(
    agent: str = "billing",
    *,
    hit: int = 1,
    broken: bool = False,
    paid: int = 1,
    way: str = "",
    at: str = "#1",
) -> Row:
    violations = ("paid 2 times, 1 due",) if broken else ()
    place = f"{agent} after x {at}"
    return Row(
        SUPPORT, "duplicate", agent, place, way, 1, hit, violations, {"paid": paid}, (place,) if hit else ()
    )


def test_the_report_counts_points_deaths_violations_and_repeats() -> None:
    rows = [
        row(),
        row(hit=0),
        row("resolver", broken=True, paid=2),
        row(way=TWICE),
        row(way="baseline", broken=True),
    ]
    assert report.last_line(rows) == "crash points: 3, deaths: 2, violations: 1"
    lines = report.table(SUPPORT, rows, {"duplicate": {"paid": 1}})
    assert lines[0][:5] == ("agent or way", "runs", "distinct frames", "hits", "violations")
    assert [line[:5] for line in lines[1:]] == [
        ("billing", "2", "1", "1", "0"),
        ("resolver", "1", "1", "1", "1"),
        ("two kills", "1", "1", "1", "0"),
        ("all, as shipped", "4", "3", "3", "1"),
        ("billing, baseline", "1", "1", "1", "1"),
    ]
    assert [line[-2] for line in lines[1:]] == ["0"] * 5
    assert [line[-1] for line in lines[1:]] == ["0", "1", "0", "1", "0"]
    text = report.section("about", [lines], rows)
    assert "paid 2 times, 1 due" in text and "Points not reached" in text
    assert not report.complete(rows) and report.complete(rows[:1])


def test_a_sweep_is_complete_when_nothing_broke_and_what_can_be_reached_was() -> None:
    reached, missed = row(), row(hit=0)
    races = [
        replace(missed, places=f"customer before {write} #1") for write in ("operation 132", "set cursors x")
    ]
    assert report.complete([reached, *races]) and not report.complete([reached] * 999 + [missed])
    assert not report.complete([reached, *races, replace(races[0], violations=("paid 2 times",))])


def test_points_of_one_frame_are_one_kill() -> None:
    rows = [
        row(at="#2 to #4"),
        row(at="#2 to #4"),
        row(at="#2 to #3"),
        row("triage", at="#2 to #4"),
        row(way=TWICE),
    ]
    assert report.distinct(rows) == 4 and report.distinct([*rows, row(way=TWICE)]) == 5
    about = report.about(SUPPORT, rows, 9, 2, 7, 61.4, 2, 4)
    assert (
        "4 (seed 7) of the 9 points" in about and "3 distinct frames" in about and "1 run in other" in about
    )


def test_who_kept_its_connections_has_a_line_of_its_own() -> None:
    rows = [row(), row(way=STOPPED), row(way=STOPPED, at="#1" + KEPT), row(way=STOPPED, at="#2" + KEPT)]
    lines = report.table(SUPPORT, rows, {"duplicate": {"paid": 1}})
    assert [line[:2] for line in lines[2:4]] == [(STOPPED, "1"), (STOPPED + KEPT, "2")]


def test_a_sample_leaves_the_full_sweeps_where_they_are() -> None:
    full = report.merged(
        "", {"support": "all of it\n\ncrash points: 9", "delivery": "that too"}, "crash points: 9"
    )
    text = report.merged(full, {"sample": "rather few"}, "crash points: 3")
    again = report.merged(text, {"sample": "others"}, "crash points: 4")
    assert "all of it" in again and "that too" in again and "others" in again and "rather few" not in again
    assert again.count("## ") == 3 and again.endswith("---\n\ncrash points: 4\n")


def test_rows_survive_in_their_file(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "rows.jsonl"
    Rows(file).add("a", row(broken=True))
    rows = Rows(file)
    assert rows.done == {"a": row(broken=True)}
    rows.forget()
    assert not Rows(file).done


def test_rows_of_other_code_are_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.jsonl"
    Rows(file).add("a", row())
    assert set(Rows(file).done) == {"a"}
    monkeypatch.setattr("desk.proving.rows.code", lambda desk: f"changed {desk}")
    assert not Rows(file).done


def test_a_desk_that_is_changed_while_it_is_swept_ends_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def sweeps(told: object, rows: Rows) -> tuple[list[Row], dict[str, str]]:
        rows.add("a", row())
        monkeypatch.setattr("desk.proving.rows.code", lambda desk: f"changed {desk}")

        async def add(name: str) -> None:
            rows.add(name, row())

        await spread(["b", "c"], add)
        raise AssertionError("it went on")

    monkeypatch.setattr("desk.proving.__main__.both", sweeps)
    file, out = tmp_path / "rows.jsonl", tmp_path / "prove.md"
    monkeypatch.setattr("sys.argv", ["proving", "--rows", str(file), "--out", str(out)])
    assert main() == 1 and not out.exists()
    said = "The code of the support desk, or of who judges it, was changed while it was tried: start again.\n"
    assert capsys.readouterr().out == said
    assert len(file.read_text().splitlines()) == 1


def test_that_the_code_was_changed_hides_nothing_else() -> None:
    changed = ExceptionGroup("of a sweep", [ExceptionGroup("of some runs", [CodeChanged("Start again.")])])
    assert refusal(changed) == "Start again."
    for others in ([OSError()], [OSError(), CodeChanged("Start again.")]):
        with pytest.raises(ExceptionGroup):
            refusal(ExceptionGroup("of a sweep", others))


@pytest.mark.parametrize("desk", [SUPPORT, DELIVERY])
@pytest.mark.parametrize("room", ["control", "runtime"])
def test_what_writes_belongs_to_the_code(
    desk: str, room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desk.proving.rows._ROOT", tmp_path)
    file = tmp_path / "desk" / room / "answers.py"
    file.parent.mkdir(parents=True)
    file.write_text("yes")
    before = code(desk)
    file.write_text("no")
    assert code(desk) != before


CASES = [
    Case(play, (Kill(agent, Point(Write("send", "x"), n, AFTER)),))
    for play in (*PLAYS.values(), *DAYS.values())
    for agent in play.agents
    for n in range(1, 6)
]


def test_a_sample_is_even_and_the_same_for_a_seed() -> None:
    chosen = sample(CASES, 80, seed=1)
    assert chosen == sample(CASES, 80, seed=1) != sample(CASES, 80, seed=2)
    assert len({(case.play.name, case.agents) for case in chosen}) == 80
    assert sorted(case.name for case in sample(CASES, 10_000, seed=1)) == sorted(case.name for case in CASES)


@pytest.mark.parametrize("way", [STOPPED, HUNG])
def test_whoever_stops_is_drawn_evenly_over_agents(way: str) -> None:
    cases = [case for case in CASES if case.play.desk == DELIVERY]
    drawn = stopped(cases, way, 18, seed=1)
    assert drawn == stopped(cases, way, 18, seed=1) != stopped(cases, way, 18, seed=2)
    assert Counter(case.kills[0].agent for case in drawn) == dict.fromkeys(DAYS["whole day"].agents, 3)
    kept = [case for case in drawn if case.kills[0].point.kept]
    assert len(kept) == (9 if way == STOPPED else 0)
    assert len({case.kills[0].agent for case in kept}) == (6 if way == STOPPED else 0)


def test_a_sweep_that_goes_on_does_what_is_left_whatever_was_drawn(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")

    def go(cases: list[Case], interrupted: int | None = None) -> int:
        left = still(SUPPORT, ONCE, cases, 10, rows)
        for case in left[:interrupted]:
            rows.add(case.name, row())
        return len(left)

    assert go(CASES, 4) == 10 and go(CASES[3:], 4) == 6 and go(CASES[5:]) == 2
    assert go(CASES) == 0 and len(rows.done) == 10


def test_a_thing_is_repeated_where_it_happens_more_often_than_in_any_undisturbed_run() -> None:
    assert most([{"starts": 2, "told": 1}, {"starts": 1, "told": 3}]) == {"starts": 2, "told": 3}


def test_two_kills_are_planned_by_their_seed() -> None:
    chosen = twice(CASES, 40, seed=1)
    assert chosen == twice(CASES, 40, seed=1) != twice(CASES, 40, seed=2)
    assert {len(case.kills) for case in chosen} == {2} and {case.way for case in chosen} == {TWICE}
    assert {len(case.agents) for case in chosen} == {1, 2}  # the same process again, or another
    assert all(case.kills[1].point.write == ANY for case in chosen if len(case.agents) == 1)


def test_a_case_is_known_by_what_it_does() -> None:
    [case] = stopped(CASES[1:2], STOPPED, 1, seed=1)
    assert case.name == f"support / {case.play.name} / triage after send x #2{KEPT} / {STOPPED}"
    assert Case(case.play, case.kills, ANSWERED).name != case.name
    assert Case(DAYS["whole day"]).agents[-1] == "simulator" and BEFORE != AFTER


def test_the_command_explains_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["proving", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert "--full" in capsys.readouterr().out


def test_a_run_in_which_something_unknown_was_asked_for_is_a_violation() -> None:
    relay = Relay("127.0.0.1", 1)
    relay.codes = {"operation 160", "code 1000317"}
    found = done(Case(PLAYS["duplicate"]), {"billing": relay}, {}, [], {"violations": [], "raw": {}})
    assert found.row.violations == ("billing asked for what the protocol does not list: code 1000317",)


@pytest.mark.parametrize("interrupted", [False, True])
def test_rows_of_a_file_that_was_named_stay_whatever_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupted: bool
) -> None:
    async def sweeps(told: object, rows: Rows) -> tuple[list[Row], dict[str, str]]:
        rows.add("a", row())
        if interrupted:
            raise asyncio.CancelledError
        return [row()], {"sample": "about"}

    monkeypatch.setattr("desk.proving.__main__.both", sweeps)
    file, out = tmp_path / "rows.jsonl", tmp_path / "prove.md"
    monkeypatch.setattr("sys.argv", ["proving", "--rows", str(file), "--out", str(out)])
    assert main() == int(interrupted)
    said = "Stopped after 1 run. The same" if interrupted else "crash points: 1, deaths: 1, violations: 0"
    assert said in capsys.readouterr().out
    assert set(Rows(file).done) == {"a"} and out.exists() != interrupted


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_full_sweep_goes_on_where_everything_else_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupted: bool
) -> None:
    kept, out, told = tmp_path / "kept.jsonl", tmp_path / "prove.md", []

    async def sweeps(told: object, rows: Rows) -> tuple[list[Row], dict[str, str]]:
        rows.add("a", row())
        return [row()], {"sample": "about"}

    def rest(arguments: list[str]) -> int:
        told.extend(arguments)
        if interrupted:
            raise KeyboardInterrupt
        return 1

    monkeypatch.setattr("desk.proving.__main__.both", sweeps)
    monkeypatch.setattr("desk.proving.__main__.KEPT", kept)
    monkeypatch.setattr("desk.proving.everything.main", rest)
    monkeypatch.setattr("sys.argv", ["proving", "--full", "--seed", "3", "--out", str(out)])
    assert main() == 1
    assert told == ["--seed", "3", "--out", str(tmp_path / "everything.md")]
    assert set(Rows(kept).done) == ({"a"} if interrupted else set())
    said = "goes on from there" if interrupted else "Of everything else something is wrong or missing"
    assert said in capsys.readouterr().out and "crash points: 1" in out.read_text()
