"""The course's notebooks as the tests see them: where they are, their cells, and running one as a reader would."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
SANITIZE = Path(__file__).with_name("sanitize.cfg")
EXEMPT_TAG = "nbval-ignore-output"


def lessons() -> list[Path]:
    """Every committed notebook, in order."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> nbformat.NotebookNode:
    """The notebook, as nbformat gives it."""
    return nbformat.read(path, as_version=4)


def code_cells(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Its code cells, in order."""
    return [cell for cell in book.cells if cell.cell_type == "code"]


def exempt(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell's output is left out of the comparison."""
    return EXEMPT_TAG in cell.metadata.get("tags", ())


def is_agent(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell is the whole of an agent's module."""
    return cell.source.startswith("%%agent ")


def parsed(cell: nbformat.NotebookNode) -> ast.Module:
    """The cell's code as a tree, %agent lines left out; top-level await is allowed as in a kernel."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    source = re.sub(r"^%%?agent .*", "", cell.source, flags=re.M)
    return compile(source, "<cell>", "exec", flags)  # type: ignore[return-value]


def compared_texts(cell: nbformat.NotebookNode) -> Iterator[str]:
    """What nbval compares of the cell's committed output, as text."""
    if exempt(cell):
        return
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        for mime, value in output.get("data", {}).items():
            if mime.startswith("text/"):
                yield value


def strictly(notebook: Path) -> subprocess.CompletedProcess[str]:
    """Run it with nbval, every output compared, in a process of its own; the working folder is the notebook's."""
    command: list[Any] = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"),
        *("--rootdir", notebook.parent, "--nbval", "--nbval-current-env"),
        *("--nbval-sanitize-with", SANITIZE, "--nbval-cell-timeout", "120", notebook),
    ]
    return subprocess.run(
        [str(part) for part in command], cwd=notebook.parent, capture_output=True, text=True
    )


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes that still name this folder or have it open as their working folder."""
    found = []
    for process in psutil.process_iter():
        try:
            line, place = " ".join(process.cmdline()), process.cwd()
        except psutil.Error:
            continue
        if str(folder) in line or place == str(folder):
            found.append(line)
    return found
