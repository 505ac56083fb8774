"""Copying pages from the WAL into the file, on a thread of its own so that commits need not wait for the disk.

Copying makes the disk write, and whoever appends meanwhile waits for it: the thread copies once the writer pauses,
or when there is much to copy. A WAL can start over only when every page of it has been copied, and under a steady
load there is always a rest the thread has not seen. So once the WAL is large the writer itself copies what came in
meanwhile, which is little. Nothing of this touches what is in the database, only where it lies.
"""

import threading
from pathlib import Path

import apsw

PAGES = 2_000  # WAL pages (16 MB) to copy, from which on the thread looks for a pause of the writer
QUIET = 0.05  # seconds without a commit that are one
MUCH = 5_000  # WAL pages (40 MB) to copy, for which it does not wait
LARGE = 8_000  # WAL pages (64 MB) after which the writer helps to let it start over ...
REST = 200  # ... as soon as no more than so many are left to copy, ...
LIMIT = 16_000  # ... or the WAL has grown to 128 MB because the thread cannot keep up


class Checkpointer:
    """Watches the commits of `writer`; close it before the writer."""

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        self._path = path
        self._writer = writer
        self._wanted = threading.Event()
        self._running = False
        self._closing = threading.Event()
        self._last = 0  # pages in the WAL at the last commit
        self._copied = 0  # of these, copied home
        self._retry = 0  # a reader held the WAL: not again before it has so many pages
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
        writer.set_wal_hook(self._committed)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._wanted.set()
        self._thread.join()
        self._writer.set_wal_hook(None)

    def _committed(self, writer: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._last:  # the WAL has started over
            self._copied = self._retry = 0
        self._last = pages
        if self._running or pages < self._retry:
            return apsw.SQLITE_OK
        rest = pages - self._copied
        if pages >= LARGE and (rest <= REST or pages >= LIMIT):
            self._copied = _copy(writer)
            self._retry = pages + PAGES
        elif rest >= PAGES or pages >= LARGE:
            self._running = True
            self._wanted.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        db = apsw.Connection(str(self._path))
        db.execute("PRAGMA synchronous = NORMAL")
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self._await_pause()
            if self._closing.is_set():
                break
            self._copied = _copy(db)
            self._running = False
        db.close()

    def _await_pause(self) -> None:
        before = -1
        while self._last != before and self._last < LARGE and self._last - self._copied < MUCH:
            before = self._last
            if self._closing.wait(QUIET):
                break


def _copy(db: apsw.Connection) -> int:
    """Copy what can be copied without waiting for anybody; pages copied of the WAL."""
    try:
        return db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    except apsw.Error:  # busy, or no space: commits go on in the WAL, a later one tries again
        return 0
