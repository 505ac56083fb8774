"""The teachers' guide says what the notebooks say: their minutes, the five questions, the exercises."""

import math
import re

import pytest

from desk.course.exercises import EXERCISES
from tests.course.wrong import WRONG
from tests.notebooks.lessons import FOLDER, code_cells, lessons, read
from tests.notebooks.solving import exercises, is_solution
from tests.notebooks.test_rules import CONTROL_ROOM

GUIDE = (FOLDER / "README.md").read_text(encoding="utf-8")
LESSONS = {path.stem: read(path) for path in lessons() if path.stem != CONTROL_ROOM}

# The rule that the guide tells its reader, in its order.
WORDS, LINES, RUNNING, ANSWER, AGENT, ROUND = 150, 12, 1, 3, 8, 5


def minutes(name: str) -> int:
    """A person's minutes for a lesson: reading its prose and its code, running it, doing its exercises."""
    cells = LESSONS[name].cells
    words = sum(len(c.source.split()) for c in cells if c.cell_type == "markdown" and not is_solution(c))
    code = [cell.source for cell in code_cells(LESSONS[name])]
    outputs = [output.get("data", {}) for cell in code_cells(LESSONS[name]) for output in cell.outputs]
    shown = [data["text/plain"] for data in outputs if data.get("text/plain", "").startswith("# desk/")]
    lines = sum(len(text.splitlines()) for text in [*code, *shown])
    agents = sum(is_solution(cell) and "%%agent" in cell.source for cell in cells)
    answers = len(exercises(LESSONS[name])) - agents
    exact = words / WORDS + lines / LINES + RUNNING + ANSWER * answers + AGENT * agents
    return ROUND * math.ceil(exact / ROUND)


@pytest.mark.parametrize("name", LESSONS)
def test_minutes_are_those_of_the_rule_here_and_in_the_lesson(name: str) -> None:
    assert re.search(rf"^\| `{name}` \|.*\| {minutes(name)} \|$", GUIDE, re.M), minutes(name)
    assert f" {minutes(name)} minutes." in LESSONS[name].cells[0].source, minutes(name)


def test_five_questions_stand_word_for_word_in_their_notebooks() -> None:
    asked = re.findall(r"^\| ([^|]+\?) \| `(\w+)` \|", GUIDE, re.M)
    assert len(asked) == 5
    for question, name in asked:
        assert any(f"**{question}**" in cell.source for cell in LESSONS[name].cells), question


def test_the_readme_asks_the_same_questions_and_sends_to_the_same_notebooks_first() -> None:
    rows = re.compile(r"^\| ([^|]+\?) \| `?(\d\d)", re.M)
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert sorted(rows.findall(readme)) == sorted(rows.findall(GUIDE))
    assert len(rows.findall(GUIDE)) == 5


def test_the_exercises_are_those_that_are_checked() -> None:
    table = GUIDE.split("<!-- exercises -->\n")[1].split("\n<!-- end -->")[0]
    rows = [f"| {number} | {exercise.asks} | `{WRONG[number]!r}` |" for number, exercise in EXERCISES.items()]
    assert table.splitlines()[2:] == rows, "\n".join(rows)
