"""The data folder of a desk: one owner at a time, and where the logs of its processes are."""

import fcntl
import os
import time
from pathlib import Path

from desk.supervisor.refused import Refused

_GRACE = 2.0  # seconds for an owner that is just ending to be gone
_FOLLOW = 20.0  # seconds for the processes of an owner that is gone to follow it: at once, unless the machine is busy


def own(folder: Path) -> int:
    """Take the folder. Returns the lock's file descriptor, which every process of the desk inherits: the folder is
    free again when the last of them is gone, however they went. Raises Refused while somebody else has it."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
    begun = time.monotonic()
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            owner = os.pread(lock, 20, 0).decode()
            if time.monotonic() - begun > (_GRACE if _lives(owner) else _FOLLOW):
                os.close(lock)
                raise Refused(
                    f"Another desk (process {owner or 'unknown'}) is using {folder}: stop it, or choose another folder."
                ) from None
            time.sleep(0.05)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _lives(owner: str) -> bool:
    """Whether that process is there; also when the folder does not say which it is."""
    try:
        os.kill(int(owner), 0)
    except ProcessLookupError:
        return False
    except (ValueError, PermissionError):
        pass
    return True


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
