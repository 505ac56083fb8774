"""The SQLite file: one owner per folder, one writer connection, transactions, readers, checkpoints.

Durable here means: a committed transaction survives SIGKILL of any process (WAL, synchronous=NORMAL). Losing
power may lose the last commits; the file stays whole.
"""

import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

VERSION = 1  # PRAGMA user_version of the data this code writes
FILE = "stack.sqlite"
LOCK = "stack.lock"
CHECKPOINT_PAGES = 1_000  # WAL pages after which a background checkpoint starts
INLINE_PAGES = 16_000  # WAL pages (64 MB) after which the writer itself waits for one
PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16000;
PRAGMA temp_store = MEMORY;
"""
META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"


class StoreError(Exception):
    """The folder cannot be used; the text is one sentence for a person."""


class Store:
    """The open data file of one folder. `db` is the only writer and belongs to the event-loop thread."""

    def __init__(self, folder: Path, db: apsw.Connection, lock: int) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.db = db
        self._lock = lock
        self._checkpoint_wanted = threading.Event()
        self._closing = False
        self._checkpointer = threading.Thread(target=self._checkpoint_loop, name="checkpoint", daemon=True)
        db.set_wal_hook(self._committed)
        self._checkpointer.start()

    @classmethod
    def open(cls, folder: Path, schemas: Sequence[str]) -> "Store":
        """Open or create the data in `folder` and make every room's tables.

        Raises StoreError when the folder cannot be written, belongs to a running stack, holds data of a newer
        version, or holds a file that is not ours; nothing is changed then.
        """
        lock = _own(folder)
        db = None
        try:
            db = apsw.Connection(str(folder / FILE))
            db.set_busy_timeout(5_000)
            _guard(folder, db)
            db.execute(PRAGMAS).fetchall()  # undrawn rows of the first would stop the others from running
            with db:
                for schema in (META, *schemas):
                    db.execute(schema)
                db.pragma("user_version", VERSION)
        except (apsw.Error, StoreError) as error:
            if db is not None:
                db.close()
            os.close(lock)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"The data in {folder} cannot be opened: {error}.") from error
        return cls(folder, db, lock)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """BEGIN IMMEDIATE .. COMMIT; any exception rolls back and goes on to the caller."""
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def reader(self) -> apsw.Connection:
        """A new read-only connection for one other thread; the caller closes it."""
        db = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        db.set_busy_timeout(5_000)
        db.execute("PRAGMA temp_store = MEMORY; PRAGMA query_only = 1;")
        return db

    def meta(self, name: str, default: int = 0) -> int:
        """A number kept under `name`, or `default`."""
        return self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).get or default

    def set_meta(self, name: str, value: int) -> None:
        """Keep a number under `name` (part of the current transaction when there is one)."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Close the file, give the folder back; closing twice is closing once."""
        if self._closing:
            return
        self._closing = True
        self._checkpoint_wanted.set()
        self._checkpointer.join(timeout=2)
        self.db.set_wal_hook(None)
        self.db.close()
        os.close(self._lock)

    def _committed(self, db: apsw.Connection, _name: str, pages: int) -> int:
        """WAL hook: copying pages home happens on another thread, unless that one cannot keep up."""
        if pages > INLINE_PAGES:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        elif pages > CHECKPOINT_PAGES:
            self._checkpoint_wanted.set()
        return apsw.SQLITE_OK

    def _checkpoint_loop(self) -> None:
        db = apsw.Connection(str(self.path))
        while not self._closing:
            self._checkpoint_wanted.wait()
            self._checkpoint_wanted.clear()
            if not self._closing:
                try:
                    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                except apsw.Error:
                    continue  # busy or full: the writer goes on in the WAL, the next commit asks again
        db.close()


def _own(folder: Path) -> int:
    """Make `folder` and take its lock; the lock goes with the process however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be written: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise StoreError(f"The folder {folder} is already in use by the stack with pid {owner}.") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _guard(folder: Path, db: apsw.Connection) -> None:
    version = db.pragma("user_version")
    if version > VERSION:
        raise StoreError(
            f"The data in {folder} was written by a newer version ({version}, this one knows {VERSION})."
        )
