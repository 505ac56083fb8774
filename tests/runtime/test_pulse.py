"""Who leaves is gone, also when its last words cannot be written."""

import subprocess
import sys

import pytest

LEAVES = "from desk.runtime.pulse import leave; leave('Lost the stack.')"
CAUGHT = """
from desk.runtime.pulse import leave
try:
    leave("Lost the stack.")
except OSError:
    print("It goes on.")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a device that is always full is Linux's")
def test_a_full_disk_keeps_nobody() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", CAUGHT], stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, done.stdout) == (1, b"")


def test_the_last_words_are_a_line_on_stderr() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"Lost the stack.\n")
