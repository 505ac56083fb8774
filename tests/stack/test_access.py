"""The folder's own password: kept whole or not at all, and one sentence where it cannot be had."""

import errno
import io
import os
import stat

import pytest

from desk.stack.broker.access import FILE, Access
from desk.stack.store import StoreError
from tests.stack.test_store import somebody_else


def password(folder):
    return Access.of_folder(folder, "iggy", None).password


def test_it_is_made_once_for_the_owner_only_and_nothing_else_is_left(tmp_path):
    made = password(tmp_path)
    assert password(tmp_path) == made
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("left", ["", "\n"])
def test_an_empty_file_is_none(tmp_path, left):
    (tmp_path / FILE).write_text(left)
    made = password(tmp_path)
    assert len(made) == 32
    assert password(tmp_path) == made


def test_what_a_start_that_was_cut_off_left_is_in_nobodys_way(tmp_path):
    (tmp_path / f"{FILE}.new").write_text("half")
    assert password(tmp_path) != "half"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full(handle, mode):
        os.close(handle)
        return Full()

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", full)
        with pytest.raises(StoreError, match=r"^The disk that holds \S+ is full: nothing was changed\.$"):
            password(tmp_path)
    assert not list(tmp_path.iterdir())
    assert password(tmp_path)


def test_a_folder_in_its_place_is_refused(tmp_path):
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreError, match=r"cannot be read: Is a directory\.$"):
        password(tmp_path)


def test_a_file_that_is_no_text_is_refused_and_left(tmp_path):
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StoreError, match=r"cannot be read: it is not text\.$"):
        password(tmp_path)
    assert (tmp_path / FILE).read_bytes() == b"\xff\xfe\x00"


def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    (tmp_path / FILE).write_text("secret")
    (tmp_path / FILE).chmod(0)
    with somebody_else(), pytest.raises(StoreError, match=r"cannot be read: Permission denied\.$"):
        password(tmp_path)
