"""Other code in an agent's place: written to a module of the desk, tried before it runs, told to every open ticket."""

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from desk.control.errors import DeskError
from desk.runtime.events import Events

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_TRIAL = 20.0  # seconds an import may take on a busy machine
CLOSED = "closed"
DONE = "done"


def write(folder: Path, name: str, text: str) -> str:
    """Keep this text as a module in the desk's folder; its name, such as "resolver_2".

    Every version stays, under a name of its own: a process killed later is replaced by one of the same version, and
    Python's cache cannot take one for another. Line numbers are those of the cell, whose first line is the magic.
    Raises DeskError for a name no module can have.
    """
    if not _NAME.fullmatch(name):
        raise DeskError(
            f"An agent cannot be called {name!r}: use small letters and digits, as in clerk or routing-1."
        )
    modules = folder / "modules"
    modules.mkdir(exist_ok=True)
    stem = name.replace("-", "_")
    module = f"{stem}_{len(list(modules.glob(f'{stem}_*.py'))) + 1}"
    (modules / f"{module}.py").write_text(f'"""{name}, from a cell."""\n{text}', encoding="utf-8")
    return module


async def refusal(folder: Path, module: str) -> str:
    """Why this module cannot be an agent, in one sentence with the line, or "". It is imported in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "desk.control.trial", str(folder / "modules"), module),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # an Interrupt in the notebook is answered here
    )
    try:
        line, _ = await asyncio.wait_for(process.communicate(), _TRIAL)
    except TimeoutError:
        return f"Importing it did not end within {_TRIAL:g} s: keep the work inside main."
    finally:
        if process.returncode is None:
            process.kill()
    if not line:
        return "Importing it ended the process: keep the work inside main."
    return json.loads(line)["refusal"]


def open_tickets(events: Iterable[Mapping[str, Any]], pid: int) -> dict[str, bool]:
    """Every ticket that is not closed, in order, and whether the process `pid` has it in its hands.

    It has from its first event about a step of it until it writes `done` for that step.
    """
    still: dict[str, set[str]] = {}
    for event in events:
        ticket = event.get("ticket")
        if ticket is None:
            continue
        if event["kind"] == CLOSED:
            still.pop(ticket, None)
            continue
        if event["kind"] == DONE and ticket not in still:
            continue  # the last word about a ticket that is closed
        steps = still.setdefault(ticket, set())
        if event.get("pid") == pid and event.get("step"):
            (steps.discard if event["kind"] == DONE else steps.add)(event["step"])
    return {ticket: bool(steps) for ticket, steps in still.items()}


async def tell(events: Events, rows: Iterable[Mapping[str, Any]], pid: int | None, words: str) -> None:
    """Write `new_code` about every open ticket, or once when none is open. pid: the process that ends, if there is one."""
    tickets = open_tickets(rows, pid or 0)
    for ticket, at_work in tickets.items():
        text = f"{words}, in the middle of this ticket" if at_work else words
        await events.emit("new_code", pid=pid, ticket=ticket, text=text, by="person")
    if not tickets:
        await events.emit("new_code", pid=pid, text=words, by="person")
