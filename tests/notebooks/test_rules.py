"""What every lesson owes its reader: short cells, prose between them, a way in, a clean end, evidence that repeats."""

import ast
import configparser
import re
from pathlib import Path
from statistics import median

import pytest

from tests.notebooks.lessons import (
    SANITIZE,
    code_cells,
    compared_texts,
    exempt,
    is_agent,
    lessons,
    parsed,
    read,
)
from tests.notebooks.solving import is_solution

NOTEBOOKS = pytest.mark.parametrize("path", lessons(), ids=lambda p: p.stem)
MOST_LINES = 12
# A cell that begins with %%agent is a process's whole program, which a learner reads and changes as one piece: it
# defines what it does, imports what it uses, and may be as long as the longest agent of the course.
MOST_AGENT_LINES = 34
AGENTS_IMPORT = re.compile(r"asyncio|json|laser_sdk|desk\.(support|runtime)(\..+)?")
CONTROL_ROOM = "control_room"
"""A place to work in, not a lesson: it has no exercises and little to explain."""

# What differs from run to run. `sanitize.cfg` may only replace these, so they may stand in a cell that it covers.
CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b\d\d:\d\d:\d\d\b|\b0x[0-9a-f]{6,}")
EVIDENCE = [
    *("1", "2", "17", "1042", "4900", "$49.00", "$98.00", "t-1", "c-17", "2 turn(s)", "1.06 s"),
    *("checkpoint", "holding", "killed", "died", "agent_up", "replay", "asked", "approved", "ledger", "paid"),
    *("closed", "looked up", "resolver up", "triage", "billing", "from checkpoint, 2 turn(s) since"),
]


def patterns() -> list[tuple[str, str]]:
    config = configparser.ConfigParser()
    config.read(SANITIZE)
    return [(config[section]["regex"], section) for section in config.sections()]


@NOTEBOOKS
def test_code_cells_are_short(path: Path) -> None:
    cells = code_cells(read(path))
    lines = [len(cell.source.splitlines()) for cell in cells if not is_agent(cell)]
    assert max(lines) <= MOST_LINES
    assert median(lines) <= 3
    assert all(len(cell.source.splitlines()) <= MOST_AGENT_LINES for cell in cells if is_agent(cell))


@NOTEBOOKS
def test_about_half_the_cells_are_prose(path: Path) -> None:
    cells = [cell for cell in read(path).cells if not is_solution(cell)]
    prose = sum(cell.cell_type == "markdown" for cell in cells) / len(cells)
    assert 0.35 <= prose <= 0.65


@NOTEBOOKS
def test_cells_call_and_never_define_unless_they_are_an_agent(path: Path) -> None:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for cell in code_cells(read(path)):
        if is_agent(cell):
            continue
        assert not [node for node in ast.walk(parsed(cell)) if isinstance(node, definitions)], cell.source


@NOTEBOOKS
def test_a_lesson_imports_the_course_and_an_agent_what_a_process_may_load(path: Path) -> None:
    for cell in code_cells(read(path)):
        for node in ast.walk(parsed(cell)):
            if isinstance(node, ast.ImportFrom) and not is_agent(cell):
                assert node.module == "desk.course", cell.source
            elif isinstance(node, ast.ImportFrom):
                assert AGENTS_IMPORT.fullmatch(node.module or ""), cell.source
            elif isinstance(node, ast.Import):
                assert is_agent(cell) and all(AGENTS_IMPORT.fullmatch(n.name) for n in node.names), (
                    cell.source
                )


@NOTEBOOKS
def test_it_opens_with_what_you_will_do_learn_and_need(path: Path) -> None:
    opening = read(path).cells[0]
    assert opening.cell_type == "markdown"
    assert opening.source.startswith("# ")
    for promise in ("*What you'll do.*", "*What you'll learn.*", "*What you'll need.*"):
        assert promise in opening.source


@NOTEBOOKS
def test_it_ends_by_stopping_its_desk(path: Path) -> None:
    assert ".stop()" in code_cells(read(path))[-1].source


@NOTEBOOKS
def test_its_outputs_are_committed_from_one_run_from_top_to_bottom(path: Path) -> None:
    cells = code_cells(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "error"]


@NOTEBOOKS
def test_compared_outputs_hold_no_pid_no_clock_and_no_address(path: Path) -> None:
    for cell in code_cells(read(path)):
        for text in compared_texts(cell):
            for pattern, _ in patterns():
                text = re.sub(pattern, "", text)
            assert not CLOCK.search(text), f"{cell.source}\n{text}"
            assert not re.search(r"\bpid\b\s*\d", text), f"{cell.source}\n{text}"


@NOTEBOOKS
def test_a_cell_that_is_not_compared_says_why(path: Path) -> None:
    for cell in code_cells(read(path)):
        assert "NBVAL" not in cell.source, "mark it by a tag, which the reader does not see"
        assert not {"nbval-skip", "raises-exception"} & set(cell.metadata.get("tags", ()))
        if exempt(cell):
            assert len(cell.metadata.get("reason", "")) > 20, cell.source


def test_nearly_every_cell_is_compared() -> None:
    cells = [cell for path in lessons() for cell in code_cells(read(path))]
    assert sum(map(exempt, cells)) < 0.05 * len(cells) or not cells


def test_every_pattern_has_its_reason_written_above_it() -> None:
    lines = SANITIZE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("["):
            assert lines[number - 1].startswith("# "), f"{line} has no reason"
            assert len(lines[number - 1]) > 20


@pytest.mark.parametrize(("pattern", "name"), patterns(), ids=lambda v: v)
def test_no_pattern_hides_a_count_a_kind_or_an_amount(pattern: str, name: str) -> None:
    for evidence in EVIDENCE:
        assert not re.search(pattern, evidence), f"{name} would hide {evidence!r}"
