"""`python -m desk rewind DATA --out DIR`: the pictures, tables, animation and page of a day, without a notebook.

DATA is the folder a delivery desk has left; the day is read from its log alone.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from desk.control import folder as folders
from desk.control.errors import DeskError
from desk.runtime.connect import StackUnreachable, connect
from desk.supervisor.client import Supervisor, SupervisorError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The subcommand and its arguments."""
    parser = commands.add_parser(
        "rewind", help="pictures, tables and a page of a delivery day, from its log", description=__doc__
    )
    parser.add_argument("data", help="the data folder of a delivery desk, such as .desk/day")
    parser.add_argument("--out", required=True, help="folder for the files")
    parser.add_argument("--day", default="", help="which day; default: the last one the folder had")
    parser.set_defaults(run=lambda a: asyncio.run(export_day(Path(a.data), Path(a.out), a.day)))


async def export_day(data: Path, out: Path, day: str = "") -> int:
    """Start the stack on this folder, read the day, write the files. Returns the exit code."""
    try:
        day = day_of(data, day)
    except DeskError as error:
        print(error, file=sys.stderr)
        return 1
    from desk.analysis.export import ExportError  # pandas and matplotlib: seconds, and only for a day to read
    from desk.analysis.rewind import rewind

    supervisor = None
    try:
        supervisor = await Supervisor.start(folder=data, embedded=True)
        read = await rewind(await connect(supervisor.connection, f"fleet-{day}"), day)
        written = read.export(out)
    except (DeskError, SupervisorError, StackUnreachable, ExportError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if supervisor:
            await supervisor.stop()
    print(f"day {day}: {read}")
    for name in written.files:
        print(written.folder / name)
    return 0


def day_of(data: Path, day: str = "") -> str:
    """The day asked for, or else the last one of the desk that left this folder. Raises DeskError: there is none."""
    try:
        last = folders.noted(data).get("day")
    except DeskError:
        last = None
    if not last:
        raise DeskError(
            f"There is no delivery desk's day in {data}: give the folder one was started with, such as .desk/day."
        )
    return day or last
