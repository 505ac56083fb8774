"""Every lesson asks two or three things, each with a check that is not passed yet and a hidden solution after it."""

from pathlib import Path

import pytest

from desk.course.exercises import EXERCISES
from tests.course.wrong import WRONG
from tests.notebooks.lessons import lessons, read
from tests.notebooks.solving import blocks, exercise, exercises, is_solution
from tests.notebooks.test_rules import CONTROL_ROOM

LESSONS = pytest.mark.parametrize(
    "path",
    [path for path in lessons() if path.stem != CONTROL_ROOM],
    ids=lambda p: p.stem,
)


@LESSONS
def test_two_or_three_exercises_numbered_after_the_notebook(path: Path) -> None:
    found = exercises(read(path))
    assert 2 <= len(found) <= 3
    assert found == [f"{int(path.stem[:2])}.{number}" for number in range(1, len(found) + 1)]


@LESSONS
def test_a_check_that_nobody_has_worked_on_is_committed_unpassed(path: Path) -> None:
    for cell in read(path).cells:
        if number := exercise(cell):
            (output,) = cell.outputs
            says = output.data["text/plain"]
            assert says.startswith(f"{number}  ") and not says.startswith(f"{number}  Right.")


@LESSONS
def test_a_hidden_solution_follows_each_exercise_and_ends_in_its_check(path: Path) -> None:
    cells = read(path).cells
    at = [index for index, cell in enumerate(cells) if exercise(cell)]
    for index in at:
        solution = cells[index + 1]
        assert is_solution(solution), f"no hidden solution after {cells[index].source}"
        assert solution.source.endswith("\n\n</details>")
        assert blocks(solution)[-1].splitlines()[-1].startswith(f'check("{exercise(cells[index])}", ')
        assert EXERCISES[exercise(cells[index])].why
    assert sum(map(is_solution, cells)) == len(at)


def test_every_exercise_is_in_a_notebook_and_has_a_typical_wrong_answer() -> None:
    asked = [number for path in lessons() for number in exercises(read(path))]
    assert sorted(asked) == sorted(EXERCISES) == sorted(WRONG)
