"""Every test that bench/found.md names is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "bench/found.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_fault_that_was_found_is_held_by_a_test(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_fault_names_one() -> None:
    rows = [
        line
        for line in (ROOT / "bench/found.md").read_text(encoding="utf-8").splitlines()
        if "| `tests/" in line
    ]
    assert len(rows) >= 13 and len(NAMED) >= len(rows)
