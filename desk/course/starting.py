"""start and reset, as a lesson has them: each desk on a fresh folder of its own, a line for what came up; and away.

A cell that is run again starts its desk again: the one its variable holds is ended first, or two would run and one of
them could no longer be reached. Desks in other variables, and those of other notebooks, stay.
"""

import ast
import linecache
import os
import re
import shutil
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from IPython import get_ipython

from desk import control
from desk.control.folder import unusable
from desk.course.setup import held_clicks
from desk.settings import Settings, SettingsError
from desk.wording import counted

_OURS = re.compile(r"(?:support|fleet)-(\d+)(?:-\d+)?")
"""A lesson's data folder is named after its desk and its kernel's process id."""
_started: list[Any] = []
"""The desks this kernel has started, for `reset`."""
_NOBODYS = "_"
"""What a cell's result is kept in when the cell gives it no name; IPython's own names begin with it."""


async def start(desk: str, *, resume: bool = False, **settings: Any) -> Any:
    """Start "support" or "fleet" and say what came up. Settings are named as in `policy_pause=8`.

    Every start has a data folder nobody else uses, so two notebooks can be open at once; folders of kernels that
    are gone are removed. With `name` (needed to `resume`) the folder is the one of that name. A desk that the same
    variable holds is stopped first, as when a cell is run again, but not for settings that are refused. Raises
    DeskError.
    """
    if get_ipython() is not None and (clicks := held_clicks()):
        print(clicks)
    cell = sys._getframe(1)
    variable, namespace = assigned(cell.f_code.co_filename, cell.f_lineno), cell.f_globals
    if "name" not in settings and not resume:
        try:
            data = Settings.from_env().having(**{k: v for k, v in settings.items() if k == "data"}).data
        except SettingsError as error:
            raise control.DeskError(str(error)) from None
        try:
            sweep(data)
            settings["name"] = free_name(data, desk)
        except OSError as error:
            raise unusable(data, error) from None
    started = await control.start(
        desk,
        resume=resume,
        on_line=_say,
        before=lambda: _end_earlier(variable, namespace),
        **settings,
    )
    _started.append(started)
    return started


async def _end_earlier(variable: str, namespace: Mapping[str, Any]) -> None:
    """Stop the desk of this variable, when this kernel has started it, it runs, and no other variable holds it."""
    earlier = next((desk for desk in _started if desk is namespace.get(variable)), None)
    if earlier is None or not earlier.running:
        return
    holders = [
        name for name, value in namespace.items() if value is earlier and not name.startswith(_NOBODYS)
    ]
    if holders in ([], [variable]):
        print("the desk started here before is stopped first, so that none runs on unseen")
        await earlier.stop()


def assigned(file: str, line: int) -> str:
    """The variable that the statement at this line gives its value to; "_" for a bare `await start(…)`, else ""."""
    try:
        cell = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ""
    around = [
        s for s in ast.walk(cell) if isinstance(s, ast.stmt) and s.lineno <= line <= (s.end_lineno or line)
    ]
    innermost = around[-1] if around else None
    if isinstance(innermost, ast.Expr) and isinstance(innermost.value, ast.Await):
        return _NOBODYS
    targets = innermost.targets if isinstance(innermost, ast.Assign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


async def reset() -> None:
    """End every desk this notebook has started and delete what they kept; what other notebooks run stays.

    Afterwards run the notebook from the top.
    """
    folders = {desk.folder for desk in _started}
    while _started:
        await _started.pop().stop()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        sweep(folder.parent)
    print(
        f"{counted(len(folders), 'desk folder')} of this notebook ended and deleted. Now run it from the top."
    )


def free_name(data: Path, desk: str) -> str:
    """A folder name below `data` that this kernel has not used."""
    pid = os.getpid()
    names = (f"{desk}-{pid}-{n}" if n > 1 else f"{desk}-{pid}" for n in count(1))
    return next(name for name in names if not (data / name).exists())


def sweep(data: Path) -> None:
    """Remove the folders of lessons whose kernel is gone."""
    for folder in data.iterdir() if data.is_dir() else ():
        match = _OURS.fullmatch(folder.name)
        if match and not psutil.pid_exists(int(match.group(1))):
            shutil.rmtree(folder, ignore_errors=True)


def _say(line: str) -> None:
    here = f"{Path.cwd()}{os.sep}"
    for part in re.split(r" {3,}(?=\S+ +up \()", line.replace(here, "")):
        print(re.sub(r" {2,}", " ", part))
