"""The data folder of a desk: fresh or kept, and what a desk notes there about itself."""

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

from desk.control.errors import DeskError

_NOTE = "desk.json"
_LOCK = "owner.lock"


def fresh(folder: Path) -> None:
    """Make the folder, or empty it. Raises DeskError while another desk is using it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != _LOCK:
                entry.unlink()
    except BlockingIOError:
        raise DeskError(
            f"Another desk is using {folder}: stop it, or start this one with another name."
        ) from None
    finally:
        os.close(lock)


def note(folder: Path, **facts: Any) -> None:
    """Remember how this desk was started."""
    (folder / _NOTE).write_text(json.dumps(facts), encoding="utf-8")


def noted(folder: Path) -> dict[str, Any]:
    """What `note` remembered. Raises DeskError where there never was a desk."""
    try:
        return json.loads((folder / _NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DeskError(f"There is no desk in {folder} to resume: start it without resume.") from None
