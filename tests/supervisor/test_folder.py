"""A data folder has one owner, and the last line of a log is found."""

import os

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
