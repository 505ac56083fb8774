"""The counting script counts code, the same way for everybody."""

import ast

import pytest

from bench.rivals.environments import ROOT
from bench.rivals.lines import TICKETS, code_lines, count
from bench.rivals.results import OURS

SOURCE = '''"""A module."""

import os  # a comment does not matter


class Worker:
    """A class
    of two lines."""

    def work(self) -> str:
        """Its job."""
        # why
        note("begun")  # measures
        return """a text
of two lines"""


def other() -> None: ...
'''


def test_blanks_comments_docstrings_and_measuring_lines_are_no_code() -> None:
    # import; class; def; return and the second line of its text; other
    assert code_lines(SOURCE) == 6


def test_a_function_of_a_class_is_counted_by_its_name() -> None:
    assert code_lines(SOURCE, "Worker.work") == 3
    assert code_lines(SOURCE, "other") == 1
    with pytest.raises(LookupError, match="nothing"):
        code_lines(SOURCE, "Worker.nothing")


def test_everything_that_is_listed_is_there_and_plain_python_has_no_durability() -> None:
    counted = {name: count(ticket) for name, ticket in TICKETS.items()}
    assert counted["plain"].durability == 0
    assert all(lines.durability > 0 for name, lines in counted.items() if name != "plain")
    assert counted[OURS].ticket > counted[OURS].durability


def test_a_helper_of_the_resolver_that_only_counted_code_calls_is_counted_too() -> None:
    counted = {unit.replace("Desk.", "") for unit in TICKETS[OURS].units}
    callers: dict[str, set[str]] = {}
    for path in ROOT.glob("desk/support/*.py"):
        file = str(path.relative_to(ROOT))
        for function in functions(file):
            unit = file if file in counted else f"{file}:{function.name}"
            for node in ast.walk(function):
                called = getattr(node, "id", getattr(node, "attr", function.name))
                if called != function.name:
                    callers.setdefault(called, set()).add(unit)
    resolver = "desk/support/resolver.py"
    helpers = {f.name for f in functions(resolver) if f.name in callers and callers[f.name] <= counted}
    assert helpers >= {"lookup_results", "is_lookup_result"}
    assert {f"{resolver}:{name}" for name in helpers} <= counted


def functions(file: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse((ROOT / file).read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
