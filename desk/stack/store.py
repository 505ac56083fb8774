"""The SQLite file: one owner per folder, one writer connection, transactions, readers, checkpoints.

Durable here means: a committed transaction survives SIGKILL of any process (WAL, synchronous=NORMAL). Losing
power may lose the last commits; the file stays whole.
"""

import contextlib
import errno
import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from desk.stack.checkpoint import Checkpointer
from desk.stack.unread import unread_commits

log = logging.getLogger(__name__)

VERSION = 1  # PRAGMA user_version of the data this code writes
APPLICATION = int.from_bytes(b"Desk")  # PRAGMA application_id, which says that the file is ours
FILE = "stack.sqlite"
LOCK = "stack.lock"
ROOM = 65_536  # bytes: SQLite's index of the WAL and a page or two
# 4 KiB pages make a large batch (one row of some 300 KB) dear, 16 KiB pages every small commit
PRAGMAS = """
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 134217728;
PRAGMA cache_size = -16000;
PRAGMA temp_store = MEMORY;
"""
META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"


class StoreError(Exception):
    """The folder cannot be used; the text is one sentence for a person."""


FILE_ERRORS = (
    apsw.FullError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.CantOpenError,
    apsw.IOError,
)
"""What goes wrong with the file or its disk, as opposed to with a statement of ours."""


def explain(error: apsw.Error, folder: Path) -> StoreError:
    """The sentence for a failure of the file or its disk."""
    match error:
        case apsw.FullError():
            return StoreError(f"The disk that holds {folder} is full: nothing was changed.")
        case apsw.IOError() | apsw.CantOpenError() if _no_room(folder):  # for the files beside the data
            return StoreError(f"The disk that holds {folder} is full: nothing was changed.")
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreError(f"The data in {folder} is damaged: {error}.")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError():
            return StoreError(f"The data in {folder} cannot be opened for writing: {error}.")
    return StoreError(f"The data in {folder} cannot be used: {error}.")


def _no_room(folder: Path) -> bool:
    """Is there less room on the disk than the smallest start needs?"""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < ROOM


def unwritable(error: OSError, folder: Path) -> StoreError:
    """The sentence for a file that cannot be made or written in `folder`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"The disk that holds {folder} is full: nothing was changed.")
    return StoreError(f"The folder {folder} cannot be written: {error.strerror}.")


class Transaction:
    """Commits, or rolls back on any exception and lets it go on to the caller.

    A failure of the file itself arrives as StoreError. A class of its own and not a generator: every publish
    passes through here.
    """

    __slots__ = ("_db", "_folder")

    def __init__(self, folder: Path, db: apsw.Connection) -> None:
        self._folder = folder
        self._db = db

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except FILE_ERRORS as error:
            raise explain(error, self._folder) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        db = self._db
        if error is None:
            try:
                db.execute("COMMIT")
                return
            except apsw.Error as failure:
                error = failure
        if db.in_transaction:
            db.execute("ROLLBACK")
        if isinstance(error, FILE_ERRORS):
            raise explain(error, self._folder) from error
        if kind is None:
            raise error


class Store:
    """The open data file of one folder. `db` is the only writer and belongs to the event-loop thread."""

    def __init__(self, folder: Path, db: apsw.Connection, lock: int) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.db = db
        self._lock = lock
        self._closed = False
        self._transaction = Transaction(folder, db)
        self._checkpointer = Checkpointer(self.path, db)

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
            with _left_alone(db, folder):
                _guard(folder, db)
                _tell_unread(folder, db)
            db.execute(PRAGMAS).fetchall()  # undrawn rows of the first would stop the others from running
            with Transaction(folder, db):
                for schema in (META, *schemas):
                    db.execute(schema)
                db.pragma("application_id", APPLICATION)
                db.pragma("user_version", VERSION)
        except (apsw.Error, StoreError) as error:
            if db is not None:
                db.close()
            os.close(lock)
            if isinstance(error, StoreError):
                raise
            raise explain(error, folder) from error
        return cls(folder, db, lock)

    def transaction(self) -> "Transaction":
        """`with store.transaction():` is BEGIN IMMEDIATE .. COMMIT; transactions do not nest."""
        return self._transaction

    def reader(self) -> apsw.Connection:
        """A new read-only connection for one other thread; the caller closes it.

        It sorts in temporary files: what a large sort took of memory, the thread would keep.
        """
        db = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        db.set_busy_timeout(5_000)
        db.execute("PRAGMA query_only = 1").fetchall()
        return db

    def meta(self, name: str, default: int = 0) -> int:
        """A number kept under `name`, or `default`."""
        return self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).get or default

    def set_meta(self, name: str, value: int) -> None:
        """Keep a number under `name` (part of the current transaction when there is one)."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Close the file, give the folder back; closing twice is closing once."""
        if self._closed:
            return
        self._closed = True
        self._checkpointer.close()
        _copy_home(self.db)
        self.db.close()
        os.close(self._lock)


def _copy_home(db: apsw.Connection) -> None:
    """Everything into the file itself, where damage is noticed, and an empty WAL.

    What cannot be copied, for want of room or for a reader that is still there, stays in the WAL.
    """
    db.set_busy_timeout(0)
    with contextlib.suppress(apsw.Error):
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _own(folder: Path) -> int:
    """Make `folder` and take its lock; the lock goes with the process however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(error, folder) from error
    try:
        _lock(folder, lock)
    except OSError as error:
        os.close(lock)
        raise unwritable(error, folder) from error
    except StoreError:
        os.close(lock)
        raise
    return lock


def _lock(folder: Path, lock: int) -> None:
    """Lock the open file `lock` and write down whose it is."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
        raise StoreError(f"The folder {folder} is already in use by the stack with pid {owner}.") from None
    file = folder / FILE
    if file.exists() and not os.access(file, os.R_OK | os.W_OK, effective_ids=True):
        # said before SQLite leaves an empty WAL beside it
        raise StoreError(f"The file {file} cannot be written.")
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


@contextlib.contextmanager
def _left_alone(db: apsw.Connection, folder: Path) -> Iterator[None]:
    """A WAL that lies beside the data stays as it is when `db` is closed before the end of this."""
    wal = folder / f"{FILE}-wal"
    kept = wal.exists() and wal.stat().st_size > 0  # an empty one is SQLite's own, made by looking
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(kept))
    yield
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def _guard(folder: Path, db: apsw.Connection) -> None:
    application, version = db.pragma("application_id"), db.pragma("user_version")
    if application != APPLICATION and (application or not _unnamed(db, version)):
        raise StoreError(f"The file {folder / FILE} belongs to another program.")
    if version > VERSION:
        raise StoreError(
            f"The data in {folder} was written by a newer version ({version}, this one knows {VERSION})."
        )


def _tell_unread(folder: Path, db: apsw.Connection) -> None:
    """No reason not to start: a loss of power may do it, and then it costs what it may cost."""
    wal = folder / f"{FILE}-wal"
    if wal.exists() and (lost := unread_commits(db, wal)):
        log.warning(
            "The last commits in %s cannot be read, %d or more of them: the disk damaged them or lost power.",
            *(wal, lost),
        )


def _unnamed(db: apsw.Connection, version: int) -> bool:
    """Is a file without an application's name empty, or one that we wrote before we put our name in?"""
    tables = dict(db.execute("SELECT name, sql FROM sqlite_schema"))
    if not tables:
        return not version
    return tables.get("meta") == META.replace("IF NOT EXISTS ", "").rstrip(";")
