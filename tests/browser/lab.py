"""JupyterLab as a person uses it: a server on a free port, Chromium, and one notebook with its kernel idle.

Known of this pair: the first keystrokes after opening can get lost, so a cell counts as run only when its prompt
says so, and is run again if it does not. Notebooks are opened without outputs, so that a prompt says it.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Error, Locator, Page, expect, sync_playwright

TOKEN = "only-on-this-machine"
PATIENCE_MS = 60_000
NOT_RUN = "[ ]:"
_HEARD_MS = 5_000  # a keystroke that has not been heard by then is lost
_ENDS = 60.0  # seconds a server may take to end its kernels
expect.set_options(timeout=PATIENCE_MS)
_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def chromium() -> str | None:
    """Path of the browser, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def jupyter_lab(folder: Path, *, theme: str = "JupyterLab Light") -> Iterator[str]:
    """A JupyterLab server over `folder` (its own settings, no news, no network); yields its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder / ".lab"
    settings.mkdir()
    (settings / "overrides.json").write_text(
        json.dumps(
            {
                "@jupyterlab/apputils-extension:notification": {
                    "fetchNews": "false",
                    "checkForUpdates": False,
                },
                "@jupyterlab/apputils-extension:themes": {"theme": theme},
                "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
            }
        )
    )
    command: list[str] = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"),
        *("--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", "--allow-root"),
        *(f"--LabApp.app_settings_dir={settings}", f"--LabApp.user_settings_dir={settings / 'user'}"),
        *(f"--LabApp.workspaces_dir={settings / 'workspaces'}", f"--ServerApp.root_dir={folder}"),
    ]
    log = (settings / "server.log").open("w")
    server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={TOKEN}&reset"
    finally:
        server.terminate()
        server.wait(_ENDS)
        log.close()


@contextmanager
def browser_page(profile: Path, width: int, height: int, scale: float = 1) -> Iterator[Page]:
    """A fresh browser window of this many CSS pixels."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium(),
            headless=True,
            args=_FLAGS,
            viewport={"width": width, "height": height},
            device_scale_factor=scale,
        )
        context.set_default_timeout(PATIENCE_MS)
        try:
            yield context.pages[0]
        finally:
            context.close()


def unrun(notebook: Path, folder: Path) -> None:
    """Copy a notebook into `folder` as it was before anybody ran it."""
    book = nbformat.read(notebook, as_version=4)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    book.metadata.pop("widgets", None)
    nbformat.write(book, folder / notebook.name)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until something holds that no selector says."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        page.wait_for_timeout(250)


class Notebook:
    """One open notebook. Cells are found by a piece of their source."""

    def __init__(self, page: Page, url: str, name: str) -> None:
        self.page = page
        # A server that is slow to start makes Lab ask which kernel to use: the one it proposes.
        asked = page.locator("dialog.jp-Dialog")
        page.add_locator_handler(asked, lambda dialog: dialog.locator(".jp-mod-accept").click())
        self.sent: list[str] = []
        """What the page has sent to the kernel."""
        page.on("websocket", lambda socket: socket.on("framesent", lambda f: self.sent.append(str(f))))
        end = time.monotonic() + PATIENCE_MS / 1000
        while True:  # the server needs a moment before it answers
            try:
                page.goto(url.format(name))
                break
            except Error:
                if time.monotonic() > end:
                    raise
                page.wait_for_timeout(250)
        self.kernel_is_idle()

    def kernel_is_idle(self) -> None:
        """Wait until the kernel has started and rests."""
        idle = self.page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']")
        expect(idle.first).to_be_visible(timeout=PATIENCE_MS)

    def cell(self, source: str) -> Locator:
        """The code cell whose source holds this text."""
        return self.page.locator(".jp-CodeCell", has=self.page.locator(".cm-content", has_text=source)).first

    def start(self, source: str) -> Locator:
        """Run that cell, which has not been run before, without waiting for its end; returns it."""
        cell = self.cell(source)
        for _ in range(5):
            cell.locator(".cm-content").click()
            self.page.wait_for_timeout(200)
            self.page.keyboard.press("Control+Enter")
            with contextlib.suppress(AssertionError):
                expect(cell.locator(".jp-InputPrompt")).not_to_have_text(NOT_RUN, timeout=_HEARD_MS)
                return cell
        raise AssertionError(f"the cell would not run: {source}")

    def run(self, source: str) -> Locator:
        """Run that cell, which has not been run before, to its end; returns it. An error in its output fails."""
        cell = self.start(source)
        self.finished(cell)
        if self._prompt(cell) == NOT_RUN:  # a kernel that was still starting drops what it was sent
            self.finished(self.start(source))
        return cell

    def finished(self, cell: Locator) -> None:
        """Wait for the end of a started cell."""
        expect(cell.locator(".jp-InputPrompt")).not_to_have_text("[*]:", timeout=PATIENCE_MS)
        errors = cell.locator("[data-mime-type='application/vnd.jupyter.error']")
        assert errors.count() == 0, errors.all_inner_texts()

    def below(self, cell: Locator) -> None:
        """Show a cell's output in a view of its own, below the notebook."""
        cell.locator(".jp-OutputArea-output").first.click(button="right")
        self.page.get_by_role("menuitem", name="Create New View for Cell Output").click()

    def tidy(self, *heights: int) -> None:
        """Close the file browser and give the views in the middle these heights, from the top, in CSS pixels."""
        self.page.keyboard.press("Control+b")
        top = self.page.locator("#jp-main-dock-panel").bounding_box()
        edge = top["y"] if top else 0
        for number, height in enumerate(heights):
            edge += height
            # The handles between views that lie above each other, topmost first.
            handles = self.page.locator(
                "#jp-main-dock-panel > .lm-DockPanel-handle[data-orientation='vertical']:not(.lm-mod-hidden)"
            )
            boxes = sorted((h.bounding_box() for h in handles.all()), key=lambda box: box["y"])
            middle = boxes[number]["x"] + boxes[number]["width"] / 2
            self.page.mouse.move(middle, boxes[number]["y"] + boxes[number]["height"] / 2)
            self.page.mouse.down()
            self.page.mouse.move(middle, edge, steps=5)
            self.page.mouse.up()

    @staticmethod
    def _prompt(cell: Locator) -> str:
        return cell.locator(".jp-InputPrompt").inner_text().strip()
