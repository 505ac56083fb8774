"""One of a thing is said as one."""

import ast
from itertools import pairwise
from pathlib import Path

import desk
from desk.wording import counted, passed_over


def test_one_drop_and_several():
    assert [counted(n, "drop") for n in (0, 1, 2)] == ["0 drops", "1 drop", "2 drops"]
    assert [counted(n, "delivery", "deliveries") for n in (1, 2)] == ["1 delivery", "2 deliveries"]


def test_records_of_others_are_said_only_where_there_are_some():
    assert [passed_over(n) for n in (0, 2)] == ["", "not the desk's and passed over: 2"]


def counts_of_many(source: str) -> list[str]:
    """The words right after a `len(...)` or a sum in an f-string of this source, where they are a plural."""
    strings = [node.values for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)]
    found = []
    for parts in strings:
        for value, after in pairwise(parts):
            said = after.value.split() if isinstance(after, ast.Constant) else []
            number = (
                isinstance(value, ast.FormattedValue)
                and not value.format_spec
                and ast.unparse(value.value).startswith(("len(", "sum("))
            )
            if number and after.value.startswith(" ") and said and said[0].strip(",.;:").endswith("s"):
                found.append(f"{ast.unparse(value.value)} {said[0]}")
    return found


def test_no_text_of_the_desk_puts_a_length_before_a_plural():
    """A length may be 1: `counted` says it. (One that needs a format, such as a comma, is never so small.)"""
    assert counts_of_many('f"{len(drops)} drops go to {to}, {len(drops)} in all"') == ["len(drops) drops"]
    rooms = (
        "control",
        "course",
        "panels",
        "analysis",
        "support",
        "delivery",
        "outside",
        "runtime",
        "supervisor",
    )
    files = [file for room in rooms for file in (Path(desk.__file__).parent / room).rglob("*.py")]
    texts = {file.name: counts_of_many(file.read_text(encoding="utf-8")) for file in files}
    assert {name: found for name, found in texts.items() if found} == {}
