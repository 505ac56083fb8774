"""The README says what the code says: its settings table and its links."""

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest

from desk.settings import Settings
from tests.notebooks.lessons import FOLDER, code_cells, read

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

FEATURES = README.split("| feature of laser-sdk |")[1].split("\n\n")[0].splitlines()[2:]


def row(variable: str, default: object, doc: str) -> str:
    shown = "max" if default == math.inf else str(default)
    return f"| `{variable}` | {f'`{shown}`' if shown else 'not set'} | {doc} |"


def test_the_settings_table_is_that_of_the_code() -> None:
    expected = [row(f.metadata["variable"], f.default, f.metadata["doc"]) for f in fields(Settings)]
    table = README.split("<!-- settings:")[1].split("<!-- end -->")[0]
    assert [line for line in table.splitlines() if line.startswith("| `")] == expected


def test_every_file_it_links_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_every_make_target_it_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.M)) <= targets


def test_every_measured_line_stands_in_the_file_it_is_quoted_from() -> None:
    blocks = re.findall(r"<!-- from (\S+) -->\n(.*?)<!-- end -->", README, re.S)
    assert blocks
    for name, quoted in blocks:
        written = (ROOT / name).read_text().splitlines()
        assert [line for line in quoted.splitlines() if line and line not in written] == [], name


def code_in_sight(number: str) -> str:
    """The code a reader of this notebook sees: its cells, and what `show` displays."""
    (path,) = FOLDER.glob(f"{number}_*.ipynb")
    cells = code_cells(read(path))
    shown = [o.get("data", {}).get("text/plain", "") for cell in cells for o in cell.outputs]
    return "\n".join(
        [*(cell.source for cell in cells), *(text for text in shown if text.startswith("# desk/"))]
    )


@pytest.mark.parametrize("line", FEATURES)
def test_a_feature_of_the_sdk_is_called_in_the_notebooks_of_its_row(line: str) -> None:
    feature, _, notebooks = (column.strip() for column in line.strip("|").split("|"))
    calls = [name.rpartition("().")[2] for name in re.findall(r"`([^`]+)`", feature)]
    # A method or an argument of one: `.watch(`, `laser.quarantine(`, `dedup=`.
    called = {call: rf"{'' if '.' in call else '[.]'}{re.escape(call)}\(|\b{call}=[^=]" for call in calls}
    texts = {number: code_in_sight(number) for number in notebooks.split(", ")}
    seen = {n: {c for c, pattern in called.items() if re.search(pattern, text)} for n, text in texts.items()}
    assert calls
    assert set(calls) - set().union(*seen.values()) == set(), "in none of its notebooks"
    assert [number for number, found in seen.items() if not found] == [], "nothing of it in these"
