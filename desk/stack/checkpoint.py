"""Copying pages from the WAL into the file, on a thread of its own so that commits need not wait for the disk.

A WAL can start over only when every page of it has been copied, and under a steady load there is always a rest the
thread has not seen. So the thread copies the bulk, and the next commit copies what little came in meanwhile.
"""

import threading
from pathlib import Path

import apsw

PAGES = 500  # WAL pages (4 MB) that start a checkpoint
REST = 500  # at most so many pages are copied by the writer itself ...
LIMIT = 16_000  # ... unless the WAL has grown to 128 MB: the thread cannot keep up


class Checkpointer:
    """Watches the commits of `writer`; close it before the writer."""

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        self._path = path
        self._writer = writer
        self._wanted = threading.Event()
        self._running = False
        self._closing = False
        self._last = 0  # pages in the WAL at the last commit
        self._due = PAGES
        self._copied = -1  # pages the thread has copied of this WAL; -1: it has not run yet
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
        writer.set_wal_hook(self._committed)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._wanted.set()
        self._thread.join()
        self._writer.set_wal_hook(None)

    def _committed(self, writer: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._last:  # the WAL has started over
            self._due, self._copied = PAGES, -1
        self._last = pages
        if pages < self._due or self._running:
            return apsw.SQLITE_OK
        if self._copied >= 0 and (pages - self._copied <= REST or pages > LIMIT):
            _copy(writer)
            # a reader may hold the WAL for now: not again before as many pages more
            self._due, self._copied = pages + PAGES, -1
        else:
            self._running = True
            self._wanted.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        db = apsw.Connection(str(self._path))
        db.execute("PRAGMA synchronous = NORMAL")
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closing:
                break
            self._copied = _copy(db)
            self._running = False
        db.close()


def _copy(db: apsw.Connection) -> int:
    """Copy what can be copied without waiting for anybody; pages copied of the WAL."""
    try:
        return db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    except apsw.Error:  # busy, or no space: commits go on in the WAL, a later one tries again
        return 0
