"""The data folder: one owner, no newer data, nothing that is not ours; transactions are whole."""

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from desk.stack.store import APPLICATION, FILE, PRAGMAS, VERSION, Store, StoreError

TABLE = "CREATE TABLE IF NOT EXISTS notes (text TEXT)"


def texts(db):
    return [text for (text,) in db.execute("SELECT text FROM notes ORDER BY text")]


@pytest.fixture
def store(tmp_path):
    made = Store.open(tmp_path / "data", [TABLE])
    yield made
    made.close()


def test_a_transaction_is_kept_whole_or_not_at_all(store):
    with store.transaction():
        store.db.execute("INSERT INTO notes VALUES ('kept')")
    with pytest.raises(RuntimeError), store.transaction():
        store.db.execute("INSERT INTO notes VALUES ('lost')")
        raise RuntimeError
    assert texts(store.db) == ["kept"]


def test_readers_see_what_is_committed_and_cannot_write(store):
    reader = store.reader()
    with store.transaction():
        store.db.execute("INSERT INTO notes VALUES ('a')")
        assert texts(reader) == []
    assert texts(reader) == ["a"]
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("INSERT INTO notes VALUES ('b')")
    reader.close()


def test_a_second_owner_is_refused_and_the_folder_is_free_again_afterwards(store, tmp_path):
    with pytest.raises(StoreError, match="already in use by the stack with pid"):
        Store.open(tmp_path / "data", [TABLE])
    store.db.execute("INSERT INTO notes VALUES ('a')")
    store.close()
    again = Store.open(tmp_path / "data", [TABLE])
    assert texts(again.db) == ["a"]
    again.close()


def test_newer_data_is_refused_and_left_as_it_is(store, tmp_path):
    store.db.pragma("user_version", VERSION + 1)
    store.close()
    before = (tmp_path / "data" / FILE).read_bytes()
    with pytest.raises(StoreError, match="newer version"):
        Store.open(tmp_path / "data", [TABLE])
    assert (tmp_path / "data" / FILE).read_bytes() == before


def test_newer_data_keeps_the_wal_that_lies_beside_it(store, tmp_path):
    store.db.pragma("user_version", VERSION + 1)
    left = tmp_path / "left"
    left.mkdir()
    for name in (FILE, FILE + "-wal"):  # as SIGKILL leaves them
        (left / name).write_bytes((tmp_path / "data" / name).read_bytes())
    before = {path.name: path.read_bytes() for path in left.iterdir()}
    with pytest.raises(StoreError, match="newer version"):
        Store.open(left, [TABLE])
    assert {name: (left / name).read_bytes() for name in before} == before
    store.db.pragma("user_version", VERSION)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE batches (x)",
        "CREATE TABLE batches (x); PRAGMA user_version = 1",
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT); PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 9",
        "PRAGMA journal_mode = WAL; CREATE TABLE batches (x)",
    ],
)
def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path, made):
    db = apsw.Connection(str(tmp_path / FILE))
    db.execute(made).fetchall()
    db.close()
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(StoreError, match="belongs to another program"):
        Store.open(tmp_path, [TABLE])
    assert (tmp_path / FILE).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {FILE, "stack.lock"}


def test_data_from_before_the_file_had_our_name_in_it_is_opened(store, tmp_path):
    store.db.execute("INSERT INTO notes VALUES ('old')")
    store.db.pragma("application_id", 0)
    store.close()
    again = Store.open(tmp_path / "data", [TABLE])
    assert texts(again.db) == ["old"]
    assert again.db.pragma("application_id") == APPLICATION
    again.close()


def test_a_start_that_was_cut_off_before_the_tables_is_nobody_elses(tmp_path):
    db = apsw.Connection(str(tmp_path / FILE))
    db.execute(PRAGMAS).fetchall()
    db.close()
    Store.open(tmp_path, [TABLE]).close()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / FILE).write_bytes(b"a shopping list, not a database" * 100)
    with pytest.raises(StoreError, match="is damaged"):
        Store.open(tmp_path, [TABLE])
    assert (tmp_path / FILE).read_bytes().startswith(b"a shopping list")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Store.open(tmp_path / "file" / "data", [TABLE])


@contextmanager
def somebody_else():
    """Permissions hold for root too, for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_read_only_place_is_refused_and_left_as_it_is(what):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others altogether
        place = Path(folder)
        Store.open(place, [TABLE]).close()
        before = {path: path.read_bytes() for path in place.iterdir()}
        place.chmod(0o555 if what == "folder" else 0o777)
        for path in before:
            path.chmod(0o444 if path.name == FILE else 0o666 if what == "file" else 0o444)
        with (
            somebody_else(),
            pytest.raises(StoreError, match=r"^[^\n]*cannot be written[^\n]*$"),
        ):
            Store.open(place, [TABLE])
        assert {path: path.read_bytes() for path in place.iterdir()} == before
        place.chmod(0o755)
        for path in before:
            path.chmod(0o644)
        Store.open(place, [TABLE]).close()


def test_commits_do_not_wait_for_the_disk(store):
    assert store.db.pragma("journal_mode") == "wal"
    assert store.db.pragma("synchronous") == 1
    assert store.db.pragma("wal_autocheckpoint") == 0


def starts(store):
    """How often the WAL has started over: the checkpoint number in its header."""
    with open(store.path.with_name(FILE + "-wal"), "rb") as wal:
        return int.from_bytes(wal.read(16)[12:], "big")


def write_until(store, condition):
    for _ in range(100_000):
        with store.transaction():
            store.db.execute("INSERT INTO notes VALUES (?)", ("x" * 4_000,))
        if condition():
            return
    pytest.fail("the WAL only grew")


def test_the_wal_starts_over_under_a_steady_load(store):
    before = starts(store)
    write_until(store, lambda: starts(store) >= before + 2)


def test_the_wal_starts_over_after_a_reader_held_it(store):
    reader = store.reader()
    reader.execute("BEGIN")
    assert texts(reader) == []
    before = starts(store)
    for _ in range(2_000):
        store.db.execute("INSERT INTO notes VALUES (?)", ("x" * 4_000,))
    assert starts(store) == before
    assert texts(reader) == []
    reader.execute("COMMIT")
    write_until(store, lambda: starts(store) > before)
    reader.close()


def test_closing_copies_everything_even_beside_a_reader(store):
    reader = store.reader()
    with store.transaction():
        store.db.execute("INSERT INTO notes VALUES (?)", ("x" * 40_000,))
    assert len(texts(reader)) == 1
    store.close()
    assert b"x" * 4_000 in store.path.read_bytes()
    assert store.path.with_name(FILE + "-wal").stat().st_size == 0
    reader.close()


def test_copying_waits_for_a_pause_and_closing_for_nothing(store, monkeypatch):
    monkeypatch.setattr("desk.stack.checkpoint.QUIET", 60)
    write_until(store, lambda: store._checkpointer._running)
    assert not store._checkpointer._copied
    store.close()


def test_a_large_wal_is_copied_without_a_pause(store, monkeypatch):
    monkeypatch.setattr("desk.stack.checkpoint.QUIET", 0.1)
    monkeypatch.setattr("desk.stack.checkpoint.LARGE", 3_000)
    write_until(store, lambda: store._checkpointer._copied)


def test_the_wal_starts_over_after_a_pause(store):
    """In the place it has: growing costs the writer twice as much."""
    write_until(store, lambda: store._checkpointer._running)
    before, size = starts(store), store.path.with_name(FILE + "-wal").stat().st_size
    deadline = time.monotonic() + 20
    while store._checkpointer._running and time.monotonic() < deadline:
        time.sleep(0.01)
    store.db.execute("INSERT INTO notes VALUES ('after')")
    assert starts(store) == before + 1
    assert store.path.with_name(FILE + "-wal").stat().st_size == size
