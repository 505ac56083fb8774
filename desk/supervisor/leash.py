"""Run a module as `python -m` would, ended when its owner is gone: `python -m desk.supervisor.leash FD MODULE ARGS…`.

FD is the read end of a pipe that the owner holds open. The module needs to know nothing of it.
"""

import runpy
import signal
import sys

from desk.runtime import life


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    life.end_with_parent()
    life.end_with_pipe(int(sys.argv[1]))
    module = sys.argv[2]
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
