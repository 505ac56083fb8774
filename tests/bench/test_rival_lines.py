"""The counting script counts code, the same way for everybody."""

import pytest

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
