"""The commit hooks judge what `make lint` judges, so that nothing red is committed."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_each_tool_of_make_lint_is_a_commit_hook() -> None:
    lint = re.search(r"^lint: venv\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert lint
    tools = {" ".join(line.split()[:2]) for line in lint[1].replace("$(BIN)/", "").splitlines()}
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0][
        "hooks"
    ]
    entries = [hook["entry"].removeprefix(".venv/bin/") for hook in hooks]
    assert len(tools) == 5
    assert [tool for tool in sorted(tools) if not any(entry.startswith(tool) for entry in entries)] == []
