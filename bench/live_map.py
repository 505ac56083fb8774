"""The live map measured: eight vans at the usual speed, CPU of the kernel and of the browser that shows them.

`python -m bench.live_map` needs Chromium; it prints a row each, ending in `holds` or `misses`, and writes
bench/live_map.md.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import psutil

from bench import ending
from tests.browser.lab import Notebook, browser_page, jupyter_lab

SECONDS = 30
AIM = 15.0  # percent of a core
_FILE = Path(__file__).with_suffix(".md")
_NAME = "map.ipynb"
_BEFORE = (
    "With vans as Markers, each of which answers a move, and a glide of 60 pictures a second, kernel and browser took"
    " 25.8 % together: about a third was the kernel's busy and idle after each answer, which JupyterLab shows, a quarter"
    " the glide."
)
_CELLS = (
    "from desk.course import panel, start",
    'fleet = await start("fleet", vans=8, orders=12, day="bench")',
    "panel.map(fleet)",
    "await fleet.stop()",
)


def cpu(processes: list[psutil.Process]) -> float:
    """CPU seconds these processes have used so far."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def kernels(folder: Path) -> list[psutil.Process]:
    """The kernels that work in this folder."""
    return [p for p in psutil.process_iter() if _is(p, "ipykernel_launcher") and _cwd(p) == str(folder)]


def browsers() -> list[psutil.Process]:
    """Every process of the browser this process has started."""
    return [p for p in psutil.Process().children(recursive=True) if _is(p, "chromium")]


def _is(process: psutil.Process, word: str) -> bool:
    try:
        return word in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _cwd(process: psutil.Process) -> str:
    try:
        return process.cwd()
    except psutil.Error:
        return ""


def main() -> int:
    """Measure and write. Returns the exit code: 1 when it misses."""
    told, answered = Counted(), Counted()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lab"
        folder.mkdir()
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in _CELLS])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
        nbformat.write(book, folder / _NAME)
        with jupyter_lab(folder) as url, browser_page(Path(name) / "profile", 1400, 1000) as page:
            page.on(
                "websocket",
                lambda socket: (socket.on("framereceived", told), socket.on("framesent", answered)),
            )
            lesson = Notebook(page, url, _NAME)
            for source in _CELLS[:-1]:
                lesson.run(source)
            page.wait_for_timeout(3_000)
            messages = told.frames, answered.frames
            before = cpu(kernels(folder)), cpu(browsers())
            page.wait_for_timeout(SECONDS * 1_000)
            kernel, browser = cpu(kernels(folder)) - before[0], cpu(browsers()) - before[1]
            messages = told.frames - messages[0], answered.frames - messages[1]
            lesson.run(_CELLS[-1])
            page.wait_for_timeout(2_000)
            rested = cpu(browsers())
            page.wait_for_timeout(SECONDS * 1_000)
            rest = cpu(browsers()) - rested
    both = (kernel + browser) / SECONDS * 100
    rows = [("kernel", kernel / SECONDS * 100, ""), ("browser", browser / SECONDS * 100, ""),
            ("together", both, "holds" if both < AIM else "misses"),
            ("of it the browser with the same page at rest", rest / SECONDS * 100, "")]  # fmt: skip
    for what, share, verdict in rows:
        print(f"{what:46} {share:5.1f} % of a core  {verdict}")
    traffic = (
        f"A second, the kernel told the page {messages[0] / SECONDS:.0f} messages; "
        f"the page answered {messages[1] / SECONDS:.1f}."
    )
    print(traffic)
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    table = "\n".join(f"| {what} | {share:.1f} % | {verdict} |" for what, share, verdict in rows)
    _FILE.write_text(
        f"# The live map\n\nWritten by `python -m bench.live_map`: eight vans at the usual speed, {SECONDS} s, CPU time"
        f" of the notebook's kernel and of Chromium without a GPU; the aim is under {AIM:g} % of a core together.\n\n"
        f"| what | of a core | |\n|---|---:|---|\n{table}\n\n{traffic} {_BEFORE}\n\n"
        f"{when}, {os.cpu_count()} cores, Python {sys.version.split()[0]}, load average {os.getloadavg()[0]:.1f}.\n"
    )
    return 0 if both < AIM else 1


class Counted:
    """Counts the frames of a websocket."""

    def __init__(self) -> None:
        self.frames = 0

    def __call__(self, _frame: object) -> None:
        self.frames += 1


if __name__ == "__main__":
    ending.run(main)
