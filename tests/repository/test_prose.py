"""What is written for people: local links lead somewhere, in documents and in notebooks, and words are spelt right."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)|<(?:a|img)\s[^>]*?(?:href|src)=[\"']([^\"']+)")
CODE = re.compile(r"```.*?```|`[^`]*`", re.S)


def committed(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@cache
def prose(path: Path) -> str:
    """What is to read in it: a document's text, a notebook's markdown cells and the code beside them."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    return "\n\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)


def anchors(text: str) -> set[str]:
    """The names its headings have as link targets, as on GitHub."""
    heads = re.findall(r"^#+\s+(.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def dead(path: Path) -> list[str]:
    """Links of this file that lead nowhere in the repository."""
    found = []
    for groups in LINK.findall(CODE.sub("", prose(path))):
        link = unquote("".join(groups))
        if re.match(r"[a-z]+:", link):
            continue
        place, _, heading = link.partition("#")
        target = (path.parent / place) if place else path
        if not target.exists() or (
            heading and target.suffix in (".md", ".ipynb") and heading not in anchors(prose(target))
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("path", committed("*.md", "*.ipynb"), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_local_link_leads_somewhere(path: Path) -> None:
    assert dead(path) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One head\n[a](page.md#one-head) [b](gone.md) [c](#no-head) `[d](code.md)` <img src='x.png'>"
    )
    assert dead(page) == ["gone.md", "#no-head", "x.png"]


def test_a_notebook_that_is_named_in_another_is_there() -> None:
    books = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    for path in committed("notebooks/*.ipynb", "notebooks/*.md"):
        named = set(re.findall(r"`(\d\d_[a-z_]+)(?:\.ipynb)?`", prose(path)))
        assert named <= books, f"{path.name} names {sorted(named - books)}"


def test_notebooks_are_spelt_right() -> None:
    books = committed("notebooks/*.ipynb")
    text = "\n".join(f"{path.stem}: {line}" for path in books for line in prose(path).splitlines())
    tool = Path(sys.executable).with_name("codespell")
    checked = subprocess.run([tool, "-"], cwd=ROOT, input=text, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
