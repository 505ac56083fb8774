"""One way to open a notebook or a page in Chromium, for every browser test."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.lab import Notebook, browser_page, chromium, jupyter_lab, unrun
from tests.needs import missing
from tests.notebooks.lessons import FOLDER, left_behind

Opener = Callable[..., Notebook]
"""(name of a notebook, theme, size in CSS pixels, what to change in the copy before it is opened) -> the notebook."""


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[[int, int], Page]]:
    """`window(1400, 1000)`: a browser window of its own, closed after the test."""
    if chromium() is None:
        missing("Chromium", "install the chromium package, or run pytest -m 'not browser'")
    with contextlib.ExitStack() as stack:
        yield lambda width, height: stack.enter_context(browser_page(tmp_path / "profile", width, height))


@pytest.fixture
def open_notebook(window: Callable[[int, int], Page], tmp_path: Path) -> Iterator[Opener]:
    """`open_notebook("02_kill_the_resolver.ipynb")`: a copy nobody has run, in a JupyterLab of its own.

    After the test no process of a desk may be left.
    """
    folder = tmp_path / "course"
    folder.mkdir()
    with contextlib.ExitStack() as stack:

        def opener(
            name: str,
            theme: str = "JupyterLab Light",
            size: tuple[int, int] = (1440, 1450),
            change: Callable[[Path], None] | None = None,
        ) -> Notebook:
            unrun(FOLDER / name, folder)
            if change:
                change(folder / name)
            url = stack.enter_context(jupyter_lab(folder, theme=theme))
            return Notebook(window(*size), url, name)

        yield opener
    assert left_behind(folder) == []
