"""What one learner takes on a shared host: a Jupyter server, a kernel and a desk's processes, by memory and by port.

`python -m bench.learner` starts a Jupyter server and, beside it, one learner's kernel after the other; each starts a
support desk or a fleet desk and works with it as a lesson does. PSS is resident memory with every shared page divided
among those that share it, so PSS adds up and RSS does not: a page of a forked agent counts in full in each RSS.
"""

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager

from bench import ending

PATIENCE = 180
MIB = 2**20
ORDER = ("kernel", "supervisor", "fork server", "agents", "stack")
DESKS: Mapping[str, Sequence[str]] = {
    "support": (
        "from desk.course import counts, panel, start, timeline\nsupport = await start('support')",
        "panel.agents(support), panel.ticket(support)",
        "ticket = await support.run('duplicate', kill='resolver', at='looking_up')",
        "timeline(support, ticket).plot()",
    ),
    "fleet": (
        "from desk.course import checks, panel, rewind, start\n"
        "fleet = await start('fleet', speed='max', vans=4, orders=3, day='mon')",
        "panel.map(fleet), panel.agents(fleet)",
        "await fleet.until_over()",
        "(await rewind(fleet)).map()",
    ),
}
"""What a lesson does, a cell a line; afterwards the desk still runs and is measured."""


def role(process: psutil.Process, kernel: int) -> str:
    """Which part of the desk this process is."""
    line = " ".join(process.cmdline())
    if process.pid == kernel:
        return "kernel"
    if "desk.stack" in line:
        return "stack"
    if "desk.supervisor.forking" in line:
        parent = process.parent()
        forked = parent is not None and "desk.supervisor.forking" in " ".join(parent.cmdline())
        return "agents" if forked else "fork server"
    return "supervisor" if "desk.supervisor" in line else "other"


def ports(processes: Sequence[psutil.Process]) -> int:
    """TCP ports these processes listen on."""
    return sum(c.status == psutil.CONN_LISTEN for p in processes for c in p.net_connections("tcp"))


def measured(kernel: int) -> dict[str, dict[str, float]]:
    """MiB of PSS and RSS of a kernel and everything below it, by part; how many processes; ports."""
    family = [psutil.Process(kernel), *psutil.Process(kernel).children(recursive=True)]
    table: dict[str, Counter[str]] = {}
    for process in family:
        memory = process.memory_full_info()
        table.setdefault(role(process, kernel), Counter()).update(
            {"processes": 1, "pss": memory.pss / MIB, "rss": memory.rss / MIB, "ports": ports([process])}
        )
    return {part: dict(row) for part, row in table.items()}


class Learner:
    """A kernel as JupyterLab would start it, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.manager = folder, AsyncKernelManager()
        self.client: Any = None

    async def begin(self, cells: Sequence[str]) -> None:
        """Start the kernel and run the cells. Raises RuntimeError with what a cell raised."""
        self.folder.mkdir()
        environment = {**os.environ, "DESK_DATA": str(self.folder / "desk")}
        await self.manager.start_kernel(cwd=str(self.folder), env=environment)
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=PATIENCE)
        for cell in cells:
            reply = await self.client.execute_interactive(
                cell, timeout=PATIENCE, output_hook=lambda message: None
            )
            if reply["content"]["status"] != "ok":
                raise RuntimeError(f"{cell}: {reply['content'].get('evalue')}")

    @property
    def kernel(self) -> int:
        return self.manager.provisioner.pid

    async def end(self) -> None:
        if self.client:
            self.client.stop_channels()
        await self.manager.shutdown_kernel(now=True)


def server_memory(folder: Path) -> dict[str, float]:
    """MiB of a JupyterLab server that has nothing open yet, and the ports it listens on."""
    flags = ["--no-browser", "--allow-root", "--port=0", f"--ServerApp.root_dir={folder}"]
    with subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *flags], cwd=folder, stdout=subprocess.DEVNULL, stderr=-3
    ) as server:
        try:
            process = psutil.Process(server.pid)
            end = time.monotonic() + PATIENCE
            while not ports([process]) and time.monotonic() < end:
                time.sleep(0.2)
            memory = process.memory_full_info()
            found = {
                "processes": 1,
                "pss": memory.pss / MIB,
                "rss": memory.rss / MIB,
                "ports": ports([process]),
            }
        finally:
            server.terminate()
    return found


async def several(desk: str, learners: int, folder: Path) -> list[dict[str, dict[str, float]]]:
    """Start that many learners one after the other, let them all run, and measure each."""
    begun = [Learner(folder / f"{desk}-{number}") for number in range(learners)]
    try:
        for learner in begun:
            await learner.begin(DESKS[desk])
        return [measured(learner.kernel) for learner in begun]
    finally:
        for learner in begun:
            if learner.manager.has_kernel:
                await learner.end()


def mean(tables: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """The same table, averaged over learners."""
    return {
        part: {what: sum(t[part][what] for t in tables) / len(tables) for what in tables[0][part]}
        for part in ORDER
    }


def line(part: str, row: Mapping[str, float]) -> str:
    return f"| {part} | {row['processes']:.0f} | {row['pss']:.0f} | {row['rss']:.0f} | {row['ports']:.0f} |"


def as_markdown(found: Mapping[str, object], about: Mapping[str, object]) -> str:
    """The result file."""
    text = [
        "# What one learner takes on a shared host",
        "",
        "Written by `python -m bench.learner`. MiB, the mean of the learners who were running at the same time; each",
        "desk has done a lesson's work (panels shown, a ticket with a kill and its plot, or a whole day and its map).",
        "PSS adds up over processes and learners; RSS counts shared pages in every process that maps them.",
        "",
    ]
    head = ["| part | processes | PSS | RSS | ports |", "|---|---:|---:|---:|---:|"]
    for desk in DESKS:
        table: dict[str, dict[str, float]] = found[desk]  # type: ignore[assignment]
        total = {what: sum(row[what] for row in table.values()) for what in table["kernel"]}
        named = f"a learner with a {desk} desk"
        text += [f"## {desk.capitalize()} desk", "", *head]
        text += [*(line(part, row) for part, row in table.items()), line(named, total), ""]
    server: dict[str, float] = found["server"]  # type: ignore[assignment]
    text += ["## Jupyter server", "", *head, line("a JupyterLab server, nothing open", server), ""]
    text.append(
        f"{about['when']}, {about['learners']} learners a desk, {about['cores']} cores, {about['system']}, "
        f"Python {about['python']}, laser-sdk {about['sdk']}."
    )
    return "\n".join([*text, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=3, help="how many at the same time")
    parser.add_argument("--dry", action="store_true", help="print the tables and write no file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="learner-") as scratch:
        found: dict[str, object] = {
            desk: mean(asyncio.run(several(desk, arguments.learners, Path(scratch)))) for desk in DESKS
        }
        found["server"] = server_memory(Path(scratch))
    about = {
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "learners": arguments.learners,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sdk": importlib.metadata.version("laser-sdk"),
    }
    text = as_markdown(found, about)
    print(text)
    if not arguments.dry:
        here = Path(__file__).with_suffix(".md")
        here.write_text(text, encoding="utf-8")
        here.with_suffix(".json").write_text(json.dumps({"about": about, **found}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    ending.run(main)
