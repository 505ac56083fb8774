"""Run lessons in place and keep their outputs: python -m tests.notebooks.run notebooks/02_kill_the_resolver.ipynb"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.notebooks.lessons import lessons, read


def run(path: Path) -> None:
    """Execute one notebook from top to bottom and write it back. Raises CellExecutionError."""
    book = read(path)
    client = NotebookClient(
        book, timeout=60, record_timing=False, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    # Which Python ran it is nobody's business and changes with every machine.
    book.metadata["language_info"] = {"name": "python"}
    nbformat.write(book, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or lessons():
        print(name)
        run(Path(name))
