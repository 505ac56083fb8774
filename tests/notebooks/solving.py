"""A lesson as one leaves it who answers each exercise wrong first, and then does what its hidden solution says."""

import copy
import re
from collections.abc import Mapping
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_output

from desk.course.exercises import EXERCISES, check
from tests.notebooks.lessons import EXEMPT_TAG, code_cells

HIDDEN = "<details>\n<summary>Solution</summary>\n\n"
_ASKS = re.compile(r"^check\(\"(\d+\.\d+)\", ", re.M)
_BLOCK = re.compile(r"^```python\n(.*?)\n```$", re.M | re.S)


def exercise(cell: nbformat.NotebookNode) -> str:
    """The number of the exercise that this code cell checks, or ""."""
    found = _ASKS.findall(cell.source) if cell.cell_type == "code" else []
    return found[-1] if found else ""


def exercises(book: nbformat.NotebookNode) -> list[str]:
    """The numbers of a notebook's exercises, in its order."""
    return [number for cell in code_cells(book) if (number := exercise(cell))]


def is_solution(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell is a hidden solution."""
    return cell.cell_type == "markdown" and cell.source.startswith(HIDDEN)


def blocks(cell: nbformat.NotebookNode) -> list[str]:
    """The cells that a hidden solution tells one to run; the last of them checks."""
    return _BLOCK.findall(cell.source)


def solved(book: nbformat.NotebookNode, wrong: Mapping[str, Any]) -> nbformat.NotebookNode:
    """The notebook with, after each exercise, a typical wrong answer that gets the hint, and the solution, which is right.

    Each inserted cell has the output it must have: run strictly, the notebook passes only if every check says so.
    """
    made = copy.deepcopy(book)
    made.cells, number = [], ""
    for cell in book.cells:
        made.cells.append(cell)
        number = exercise(cell) or number
        if is_solution(cell):
            made.cells += [
                _checking(f'check("{number}", {wrong[number]!r})', repr(check(number, wrong[number]))),
                *(_cell(block) for block in blocks(cell)[:-1]),
                _checking(blocks(cell)[-1], repr(check(number, EXERCISES[number].right))),
            ]
    return made


def _checking(source: str, says: str) -> nbformat.NotebookNode:
    output = new_output("execute_result", {"text/plain": says}, execution_count=1)
    return new_code_cell(source, outputs=[output], execution_count=1)


def _cell(source: str) -> nbformat.NotebookNode:
    return new_code_cell(source, metadata={"tags": [EXEMPT_TAG]})
