"""start and reset, as a lesson has them: each desk on a fresh folder of its own, a line for what came up; and away."""

import os
import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from desk import control
from desk.control.folder import unusable
from desk.settings import Settings, SettingsError

_OURS = re.compile(r"(?:support|fleet)-(\d+)(?:-\d+)?")
"""A lesson's data folder is named after its desk and its kernel's process id."""
_started: list[Any] = []
"""The desks this kernel has started, for `reset`."""


async def start(desk: str, *, resume: bool = False, **settings: Any) -> Any:
    """Start "support" or "fleet" and say what came up. Settings are named as in `policy_pause=8`.

    Every start has a data folder nobody else uses, so two notebooks can be open at once; folders of kernels that
    are gone are removed. With `name` (needed to `resume`) the folder is the one of that name. Raises DeskError.
    """
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
    started = await control.start(desk, resume=resume, on_line=_say, **settings)
    _started.append(started)
    return started


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
    print(f"{len(folders)} desk folder(s) of this notebook ended and deleted. Now run it from the top.")


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
