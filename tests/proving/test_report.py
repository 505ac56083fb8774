"""The judge's independence, and the pure parts of a sweep: sampling, rows, report."""

import ast
from pathlib import Path

import pytest

from desk.proving import invariants, report
from desk.proving.__main__ import main
from desk.proving.frames import Write
from desk.proving.plays import PLAYS
from desk.proving.relay import AFTER, Point
from desk.proving.rows import Rows
from desk.proving.stage import Row
from desk.proving.sweep import Case, sample


def test_the_judge_imports_nothing_of_the_desk() -> None:
    tree = ast.parse(Path(invariants.__file__).read_text())
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert modules and not any(module.startswith("desk") for module in modules)


def row(agent: str = "billing", *, killed: bool = True, broken: bool = False, paid: int = 1) -> Row:
    point = Point(Write("send", "desk.events"), 1, AFTER)
    return Row(
        "duplicate", agent, point, "", killed, ("paid 2 times, 1 due",) if broken else (), {"paid": paid}
    )


def test_the_report_counts_points_deaths_violations_and_repeats() -> None:
    rows = [row(), row(killed=False), row("resolver", broken=True, paid=2)]
    assert report.last_line(rows) == "crash points: 3, deaths: 2, violations: 1"
    lines = report.table(rows, {"duplicate": {"paid": 1}})
    assert [line[:4] for line in lines[1:]] == [
        ("billing", "2", "1", "0"),
        ("resolver", "1", "1", "1"),
        ("all, as shipped", "3", "2", "1"),
    ]
    assert [line[-1] for line in lines[1:]] == ["0", "1", "1"]
    text = report.markdown(lines, rows, "about")
    assert "paid 2 times, 1 due" in text and "Points not reached" in text


def test_rows_survive_in_their_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    Rows(file).add("a", row(broken=True))
    assert Rows(file).done == {"a": row(broken=True)}


def test_a_sample_is_even_and_the_same_for_a_seed() -> None:
    cases = [
        Case(play, agent, Point(Write("send", "x"), n, AFTER))
        for play in PLAYS.values()
        for agent in ("triage", "billing")
        for n in range(1, 6)
    ]
    chosen = sample(cases, 30, seed=1)
    assert chosen == sample(cases, 30, seed=1) != sample(cases, 30, seed=2)
    assert len({(case.play.name, case.agent) for case in chosen}) == 30
    assert sorted(case.name for case in sample(cases, 10_000, seed=1)) == sorted(case.name for case in cases)


def test_the_command_explains_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["proving", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert "--full" in capsys.readouterr().out
