"""Every command the README and the guides name is tried here, run by another test, or named as not run, with a reason.

Make targets are asked what they would do (`make -n`); where a test runs what they would run, or why none does, is in
a table of its own.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = ("README.md", "CONTRIBUTING.md", "notebooks/README.md")
COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:make|python3?|docker|conda|jupyter|pip|pytest|git|codespell|mypy)(?: .+)?"
)
PLACEHOLDERS = {"DIR": "out", "DATA": "no-data"}

TRIED = {
    "python -m desk --help": 0,
    "python -m desk reset": 0,
    # a folder that holds no day is refused in one sentence
    "python -m desk rewind DATA --out DIR": 1,
}
"""Command -> its exit code in an empty folder."""

ELSEWHERE = {
    "python -m desk.stack --data DIR": "tests/stack",
    "python -m tests.notebooks.run notebooks/02_kill_the_resolver.ipynb": "tests/notebooks",
}
"""Command -> where a test runs what it runs."""

CI = ".ci/run"
MADE = {
    "venv": (CI, "make test"),
    "test": (CI, "make test"),
    "lint": (CI, "make test"),
    "lab": ("tests/browser/test_make_lab.py", '"lab"'),
    "demo": ("tests/control/test_support_lives.py", 'run, "demo"'),
    "day": ("tests/repository/test_targets.py", 'made("day"'),
    "bench": ("tests/repository/test_targets.py", 'made("bench"'),
    "prove": ("tests/repository/test_targets.py", 'made("prove"'),
    "site": ("tests/repository/test_targets.py", 'made("site"'),
    "notebooks": ("tests/notebooks/lessons.py", "--nbval"),
}
"""Target -> where what it runs is run, and what stands there."""
UNMADE = {
    "wheelhouse": "needs the network for every file; notebooks/README.md says how it was tried",
    "coverage": "runs the tests a second time",
    "constraints": "writes what is installed here; the file is tested",
    "clean": "removes the environment that the tests run in",
}
"""Target -> why no test runs what it runs."""

NOT_RUN = {
    "docker compose up -d": "no Docker engine here",
    "conda env create -f environment.yml": "no conda here",
    "conda activate laser-desk": "no conda here",
    "jupyter lab": "runs until it is closed; tests/browser starts the same server",
    "python -m bench.learner": "measures for minutes",
}
"""Command -> why nobody runs it in a test. The README says so where it matters."""


def commands(name: str) -> Iterator[str]:
    """Commands in code blocks and in `code` of a document, without comments."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if COMMAND.fullmatch(line.split("  #")[0].strip()):
                yield line.split("  #")[0].strip()
    for code in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        if COMMAND.fullmatch(code) and " " in code:
            yield code


EVERY = sorted({command for name in GUIDES for command in commands(name)})


def bare(command: str) -> str:
    """Without the variables set before it."""
    return re.sub(r"^(?:[A-Z_]+=\S+ )+", "", command)


@pytest.mark.parametrize("command", EVERY)
def test_a_command_is_tried_or_known(command: str, tmp_path: Path) -> None:
    command = bare(command)
    if command.startswith("make "):
        would = subprocess.run(
            ["make", "-n", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True
        )
        assert would.returncode == 0, would.stderr
    elif command in TRIED:
        words = [sys.executable, *(PLACEHOLDERS.get(word, word) for word in command.split()[1:])]
        ran = subprocess.run(
            words,
            cwd=tmp_path,
            env={
                "PYTHONPATH": str(ROOT),
                "PATH": "",
                "HOME": str(tmp_path),
                "DESK_DATA": str(tmp_path / "d"),
            },
            capture_output=True,
            text=True,
        )
        assert ran.returncode == TRIED[command], ran.stderr
        assert "Traceback" not in ran.stderr
    elif command in ELSEWHERE:
        assert (ROOT / ELSEWHERE[command]).exists()
    else:
        assert command in NOT_RUN, f"{command}: try it here, or say why nobody does"


TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)


def test_what_a_target_runs_is_run_somewhere_or_it_is_said_why_not() -> None:
    assert sorted(TARGETS) == sorted((*MADE, *UNMADE))
    for target, (place, words) in MADE.items():
        assert words in (ROOT / place).read_text(encoding="utf-8"), f"{target} is not run in {place}"


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_runs_is_installed(target: str) -> None:
    would = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert would.returncode == 0, would.stderr
    tools = Path(sys.executable).parent
    for tool in re.findall(r"^\.venv/bin/([\w-]+)", would.stdout, re.M):
        assert (tools / tool).exists() or shutil.which(tool), tool
    for module in re.findall(r"-m (desk[\w.]*|bench[\w.]*)", would.stdout):
        place = ROOT / module.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file(), module


def test_the_lists_hold_nothing_that_is_nowhere_named() -> None:
    named = {bare(command) for command in EVERY}
    assert not {*TRIED, *ELSEWHERE, *NOT_RUN} - named
