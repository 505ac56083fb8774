"""A data folder has one owner, and the last line of a log is found."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from desk.supervisor import folder
from desk.supervisor.refused import Refused


def test_second_owner_is_refused_and_told_who_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_GRACE", 0)
    lock = folder.own(tmp_path)
    with pytest.raises(
        Refused, match=rf"Another desk \(process {os.getpid()}\) is using {tmp_path}: stop it"
    ):
        folder.own(tmp_path)
    os.close(lock)
    os.close(folder.own(tmp_path))


def test_the_processes_of_an_owner_that_is_gone_are_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_GRACE", 0)
    left = folder.own(tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    os.pwrite(left, f"{gone.pid:<20}".encode(), 0)
    with ThreadPoolExecutor() as thread:
        waiting = thread.submit(folder.own, tmp_path)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        os.close(left)
        os.close(waiting.result(30))


@pytest.mark.parametrize(
    ("text", "start", "line"),
    [
        ("", 0, ""),
        ("one\ntwo\n\n  \n", 0, "two"),
        ("of the life before\n", 19, ""),
        ("x" * 10_000 + "\nlast", 0, "last"),
    ],
)
def test_last_line(tmp_path, text, start, line):
    log = tmp_path / "a.err"
    log.write_text(text)
    assert folder.last_line(log, start) == line


def test_no_log_no_line(tmp_path):
    assert folder.last_line(tmp_path / "none.err", 0) == ""
