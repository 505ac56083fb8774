"""A benchmark that is told to end takes what it started with it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.supervisor.running import below, survivors

ROOT = Path(__file__).parents[2]
BENCHES = ("crash_stack", "recovery_self", "stack")  # of each kind that needs neither a browser nor rivals


def started(bench: str, scratch: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"bench.{bench}"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def has_a_child(bench: psutil.Process) -> bool:
    return bool(bench.children())


def has_a_server(bench: psutil.Process) -> bool:
    try:
        return any(
            connection.status == psutil.CONN_LISTEN
            for child in bench.children(recursive=True)
            for connection in child.net_connections("tcp")
        )
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("reached", [has_a_child, has_a_server])
@pytest.mark.parametrize("bench", BENCHES)
def test_sigterm_leaves_no_process_and_no_folder(bench, reached, tmp_path) -> None:
    process = started(bench, tmp_path)
    try:
        end = time.monotonic() + 60
        while not reached(psutil.Process(process.pid)):
            assert process.poll() is None and time.monotonic() < end, process.stderr.read()
            time.sleep(0.01)
        processes = below(process.pid)
        process.terminate()
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert b"Traceback" not in said
        assert not survivors(processes)
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()


def test_every_benchmark_ends_that_way() -> None:
    """A server is ended by the benchmark that started it, so it needs no such end."""
    programs = {path.stem: path.read_text() for path in ROOT.glob("bench/**/*.py") if not is_server(path)}
    mains = {name for name, source in programs.items() if "__main__" in source}
    assert len(mains) > 6
    assert mains == {name for name in mains if "ending.run(main)" in programs[name]}


def is_server(path: Path) -> bool:
    return path.stem.endswith("_server") or path.parent.name == "workers"
