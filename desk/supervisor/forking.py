"""The fork server: a process that has imported what every agent needs, and forks agents within milliseconds.

Rules. It has one thread and never connects to anything, because a process with the SDK's threads cannot be forked
safely. It knows no agent module: those are imported in the child. Commands are JSON lines on stdin, reports are
JSON lines on stdout; when stdin ends it ends, and its children with it. As their parent it learns of their deaths
from the kernel (SIGCHLD), so no timer is involved and no pid can be mistaken. Each child leads a process group:
what it started itself goes with it.
"""

import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from desk.runtime import life, process
from desk.runtime.spec import Spec

_LINE = 65536

# What agents import anyway: once here instead of after every death.
_PRELOAD = (
    "desk.runtime.saved",
    "datetime",
    "decimal",
    "hashlib",
    "random",
    "shutil",
    "sqlite3",
    "subprocess",
    "uuid",
)


def report(descriptor: int, **fields: Any) -> None:
    """One line, written whole: children report on the same pipe."""
    os.write(descriptor, json.dumps(fields).encode() + b"\n")


class ForkServer:
    """The loop: fork on command, report births and deaths."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.life_read, self.life_write = os.pipe()
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_write, False)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.out = os.dup(sys.stdout.fileno())

    def serve(self) -> None:
        """Until stdin ends."""
        report(self.out, ready=os.getpid())
        pending = b""
        while True:
            readable, _, _ = select.select([0, self.wake_read], [], [])
            if self.wake_read in readable:
                os.read(self.wake_read, _LINE)
                self.reap()
            if 0 in readable:
                data = os.read(0, _LINE)
                if not data:
                    for pid in self.names:
                        end_group(pid)
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    command = json.loads(line)
                    self.fork(Spec.from_json(command["spec"]), Path(command["log"]))

    def fork(self, spec: Spec, log: Path) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.become(spec, log, parent)
        self.names[pid] = spec.name
        report(self.out, forked=spec.name, pid=pid)

    def reap(self) -> None:
        while self.names:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            end_group(pid)
            report(self.out, exited=self.names.pop(pid), pid=pid, code=os.waitstatus_to_exitcode(status))

    def become(self, spec: Spec, log: Path, parent: int) -> NoReturn:
        """In the child: leave everything of the fork server behind and be that process."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (self.life_write, self.wake_read, self.wake_write):
                os.close(descriptor)
            life.end_with_parent()
            if os.getppid() != parent:  # the parent ended before the line above
                os._exit(1)
            life.end_with_pipe(self.life_read)
            _redirect(log)

            def tell(what: str) -> None:
                # A beat may be left out: waiting for a supervisor that reads nothing would block this process.
                if what != "beat" or select.select([], [self.out], [], 0)[1]:
                    report(self.out, **{what: spec.name}, pid=os.getpid())

            sys.path.append(str(spec.folder / "modules"))
            process.run(spec, tell)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def end_group(pid: int) -> None:
    """SIGKILL whatever is left of the group that this child leads or led."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _redirect(log: Path) -> None:
    """Read nothing; stdout and stderr to the log."""
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(null)
    os.close(file)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited by every child
    for module in _PRELOAD:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # so that collections in children do not copy the pages they share
    ForkServer().serve()


if __name__ == "__main__":
    main()
