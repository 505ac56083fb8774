"""What make bench, prove, day and site run is really run here, made small; and a day that was left is rewound.

make -n says what a target runs, so that nothing is installed. How fast it was is not looked at.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
PATIENCE = 600.0

pytestmark = pytest.mark.timeout(PATIENCE + 60)


def made(target: str, *arguments: object, data: Path) -> list[str]:
    """Run what a target runs with these arguments; returns the lines it printed. It must end well."""
    words = shlex.join(map(str, arguments))
    asked = ["make", "--no-print-directory", "-n", target, f"ARGS={words}"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert told.endswith(words)
    return ran(told.replace(".venv/bin", str(TOOLS)), data)


def ran(command: str, data: Path) -> list[str]:
    """Run a command from the project's folder; a desk's data goes below `data`."""
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env={**os.environ, "DESK_DATA": str(data)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


def test_make_bench_measures_the_stack(tmp_path: Path) -> None:
    lines = made("bench", "--quick", data=tmp_path)
    assert any(line.startswith("from start to accepting, empty") for line in lines)
    assert " rows, " in lines[-1]


def test_make_prove_kills_counts_and_reports(tmp_path: Path) -> None:
    report = tmp_path / "prove.md"
    small = ("--desk", "support", "--size", "1", "--workers", "1", "--out", report)
    lines = made("prove", *small, data=tmp_path)
    assert lines[-1].startswith("crash points: 1, deaths: ") and lines[-1].endswith(", violations: 0")
    assert lines[-1] in report.read_text(encoding="utf-8")


def test_make_day_leaves_a_day_that_can_be_rewound(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    lines = made("day", "--vans", 2, "--kills", 2, "--data", data, data=tmp_path)
    assert lines[-1] == "day closed: 9 checks, 0 failed"
    (day,) = data.iterdir()
    told = ran(shlex.join([sys.executable, "-m", "desk", "rewind", str(day), "--out", str(out)]), tmp_path)
    assert told and (out / "rewind.html").stat().st_size > 100_000
    assert {"gantt.png", "map.svg", "frames.csv", "day.gif"} <= {file.name for file in out.iterdir()}


def test_make_site_writes_a_page_for_each_notebook(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    lines = made("site", "--out", out, data=tmp_path)
    names = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {page.stem for page in out.glob("*.html")} == {"index", *names}
    assert str(out / "index.html") in lines[-1]
