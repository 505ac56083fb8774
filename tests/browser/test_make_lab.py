"""make lab: the command it runs serves the course, the first notebook opened."""

import json
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.browser.lab import TOKEN

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0


def test_make_lab_serves_the_first_notebook(tmp_path: Path) -> None:
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", "lab"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    program, *words = shlex.split(told.splitlines()[-1])
    assert program == ".venv/bin/jupyter" and words[-1] == "notebooks/00_start_here.ipynb"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("jupyter")), *words, "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}"]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        book = json.loads(_answer(f"http://127.0.0.1:{port}/api/contents/00_start_here.ipynb", server))
        assert book["type"] == "notebook"
        assert "Start here" in book["content"]["cells"][0]["source"]
        assert b"JupyterLab" in _answer(f"http://127.0.0.1:{port}/lab/tree/00_start_here.ipynb", server)
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _answer(url: str, server: subprocess.Popen[bytes]) -> bytes:
    """What the server says, once it is there."""
    request = urllib.request.Request(url, headers={"Authorization": f"token {TOKEN}"})
    end = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.read()
        except urllib.error.URLError:
            time.sleep(0.25)
    raise AssertionError(f"the server does not answer (exit code {server.poll()})")
