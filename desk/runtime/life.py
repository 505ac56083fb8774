"""Tie the life of this process to its owner's: no death above leaves an orphan."""

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """On Linux: the kernel kills this process when the thread that made it ends, even while it is stopped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with_pipe(read_end: int) -> None:
    """Everywhere: end this process when the last write end of this pipe closes. Starts a daemon thread."""

    def wait() -> None:
        os.read(read_end, 1)  # nobody writes: this returns at the end of file, when the owner is gone
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="life", daemon=True).start()
