"""Commits in a WAL behind a damaged frame: told at the start; what SIGKILL and a WAL that started over leave is not."""

import pytest

from desk.stack.store import FILE, Store

TABLE = "CREATE TABLE IF NOT EXISTS notes (text TEXT)"
WAL = FILE + "-wal"


@pytest.fixture
def left(tmp_path):
    """A folder as SIGKILL leaves it: ten commits in the WAL."""
    store = Store.open(tmp_path / "data", [TABLE])
    for number in range(10):
        with store.transaction():
            store.db.execute("INSERT INTO notes VALUES (?)", (f"{number}" * 20_000,))
    folder = tmp_path / "left"
    folder.mkdir()
    for name in (FILE, WAL):
        (folder / name).write_bytes((tmp_path / "data" / name).read_bytes())
    store.close()
    return folder


def notes(folder):
    store = Store.open(folder, [TABLE])
    count = store.db.execute("SELECT count(*) FROM notes").get
    store.close()
    return count


@pytest.mark.parametrize("kept", [1, 5, 9])
def test_commits_from_a_flipped_bit_on_are_told(left, caplog, kept):
    wal = bytearray((left / WAL).read_bytes())
    wal[wal.index(f"{kept}".encode() * 100)] ^= 1
    (left / WAL).write_bytes(wal)
    assert notes(left) == kept
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"cannot be read, {10 - kept} or more of them" in caplog.text


def test_a_first_frame_that_is_damaged_is_told(left, caplog):
    wal = bytearray((left / WAL).read_bytes())
    wal[100] ^= 1
    (left / WAL).write_bytes(wal)
    assert notes(left) == 0
    assert "cannot be read, 11 or more of them" in caplog.text


@pytest.mark.parametrize("length", [0, 10, 32])
def test_a_wal_that_has_only_begun_is_nothing_to_tell(left, caplog, length):
    (left / WAL).write_bytes((left / WAL).read_bytes()[:length])
    assert notes(left) == 0
    assert not caplog.records


def test_a_whole_wal_is_nothing_to_tell(left, caplog):
    assert notes(left) == 10
    assert not caplog.records


@pytest.mark.parametrize("torn", [1, 5_000, 20_000])
def test_a_commit_that_was_cut_off_is_nothing_to_tell(left, caplog, torn):
    (left / WAL).write_bytes((left / WAL).read_bytes()[:-torn])
    assert notes(left) == 9
    assert not caplog.records


def test_what_lies_behind_a_wal_that_started_over_is_nothing_to_tell(left, tmp_path, caplog):
    store = Store.open(left, [TABLE])
    store.db.wal_checkpoint()
    with store.transaction():
        store.db.execute("INSERT INTO notes VALUES ('first')")
    again = tmp_path / "again"
    again.mkdir()
    for name in (FILE, WAL):
        (again / name).write_bytes((left / name).read_bytes())
    store.close()
    assert notes(again) == 11
    assert not caplog.records
