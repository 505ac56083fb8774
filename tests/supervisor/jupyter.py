"""Stands for Jupyter: a process that has started a kernel in which a cell started a desk. Prints the kernel's pid."""

import sys
import time

from jupyter_client.manager import start_new_kernel

from tests.supervisor.conftest import ROOT

OWN = """
from pathlib import Path
from tests.supervisor.owner import own
desk = await own(Path({folder!r}))
"""


def main() -> None:
    manager, client = start_new_kernel(cwd=str(ROOT))
    client.execute_interactive(OWN.format(folder=sys.argv[1]), timeout=60, output_hook=lambda message: None)
    print(manager.provisioner.pid, flush=True)
    time.sleep(300)


if __name__ == "__main__":
    main()
