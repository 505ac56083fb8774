"""The data folder of a desk: one owner at a time, and where the logs of its processes are."""

import fcntl
import os
import time
from pathlib import Path

from desk.supervisor.refused import Refused

_GRACE = 2.0  # seconds for the processes of an owner that has just died to follow it


def own(folder: Path) -> int:
    """Take the folder. Returns the lock's file descriptor, which every process of the desk inherits: the folder is
    free again when the last of them is gone, however they went. Raises Refused while somebody else has it."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + _GRACE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                owner = os.pread(lock, 20, 0).decode() or "unknown"
                os.close(lock)
                raise Refused(
                    f"Another desk (process {owner}) is using {folder}: stop it, or choose another folder."
                ) from None
            time.sleep(0.05)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def log_file(folder: Path, name: str) -> Path:
    """Where the stderr of that process goes."""
    return folder / "logs" / f"{name}.err"


def last_line(log: Path, start: int) -> str:
    """The last line that is not blank after byte `start`, or an empty text."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
