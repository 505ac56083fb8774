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


def place(data: Path, name: str) -> Path:
    """The folder of the desk of this name below `data`. Raises DeskError for what is not one plain name."""
    if not isinstance(name, str) or name in ("", ".", "..") or Path(name).name != name or "\0" in name:
        raise DeskError(f"A desk's folder has a plain name such as demo, not {name!r}.")
    return (data / name).absolute()


def unusable(folder: Path, error: OSError) -> DeskError:
    """What to say when the file system refuses."""
    return DeskError(f"The data folder {folder} cannot be used: {error.strerror}. Choose another DESK_DATA.")


def is_desk(folder: Path) -> bool:
    """Whether a desk made this folder: only such a one is ever emptied."""
    return folder.is_dir() and any((folder / name).exists() for name in (_LOCK, _NOTE))


def fresh(folder: Path) -> None:
    """Make the folder, or empty it if it is a desk's. Raises DeskError: in use, not a desk's, not to be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not is_desk(folder) and any(folder.iterdir()):
            raise DeskError(
                f"{folder} holds files that are not a desk's, and a fresh desk would delete them: "
                "choose another name or DESK_DATA."
            )
        _empty(folder)
    except OSError as error:
        raise unusable(folder, error) from None


def _empty(folder: Path) -> None:
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
