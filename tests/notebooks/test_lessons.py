"""Every lesson runs by itself, gives what is committed, survives a kernel restart half way, and leaves nothing.

The run after the restart does the exercises: a typical wrong answer gets its hint, the hidden solution passes.
"""

import asyncio
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.course.wrong import WRONG
from tests.notebooks.lessons import FOLDER, left_behind, lessons, read, strictly
from tests.notebooks.solving import solved

NOTEBOOKS = pytest.mark.parametrize("path", lessons(), ids=lambda p: p.stem)


@pytest.fixture
def copied(path: Path, tmp_path: Path) -> Path:
    """The notebook in a folder of its own, so that its desk's data is its own too."""
    return Path(shutil.copy(FOLDER / path.name, tmp_path))


@NOTEBOOKS
@pytest.mark.timeout(600)
def test_alone_and_then_with_its_exercises_done_after_a_restart_half_way(copied: Path) -> None:
    first = strictly(copied)
    assert first.returncode == 0, first.stdout + first.stderr
    assert left_behind(copied.parent) == []
    asyncio.run(_half_way(copied))
    nbformat.write(solved(read(copied), WRONG), copied)
    second = strictly(copied)
    assert second.returncode == 0, second.stdout + second.stderr
    assert left_behind(copied.parent) == []


async def _half_way(path: Path) -> None:
    """Run the first half of the cells, then let the kernel die as a restart kills it."""
    book = read(path)
    book.cells = book.cells[: len(book.cells) // 2]
    client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(path.parent)}})
    async with client.async_setup_kernel():
        for index, cell in enumerate(book.cells):
            await client.async_execute_cell(cell, index)
        assert client.km is not None
        await client.km.shutdown_kernel(now=True)
