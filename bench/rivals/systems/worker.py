"""A rival's worker process: started with its own Python, and started again at once whenever it dies."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from bench.rivals.environments import ROOT


def environment() -> dict[str, str]:
    """What a process of a rival is told: where the repository is, and nothing else beyond ours."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


class Worker:
    """Keeps one process alive until stopped. A death is seen by a thread that waits for nothing else."""

    def __init__(self, python: Path, module: str, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._command = [str(python), "-P", "-m", module, str(folder), *arguments]
        self._folder = folder
        self._stopping = False
        self._process = self._spawn()
        threading.Thread(target=self._keep, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End it for good."""
        self._stopping = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        with (self._folder / "worker.err").open("ab") as log:
            return subprocess.Popen(
                self._command, env=environment(), cwd=self._folder, stdout=log, stderr=log
            )

    def _keep(self) -> None:
        while True:
            self._process.wait()
            if self._stopping:
                return
            self._process = self._spawn()
            if self._stopping:  # stopped in between
                self._process.kill()
