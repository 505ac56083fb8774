"""The README says what the code says: its settings table and its links."""

import math
import re
from dataclasses import fields
from pathlib import Path

from desk.settings import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


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
