"""Copying pages from the WAL into the file, on a thread of its own so that commits need not wait for the disk.

Copying makes the disk write, and whoever appends meanwhile waits for it. So the thread copies once the writer
pauses; then it copies everything, and the WAL starts over in the place it has on the disk, which costs half of what
growing does. Under a steady load it copies when the WAL is large, and there is always a rest it has not seen: the
writer itself copies that, which is little, to let the WAL start over. Nothing of this touches what is in the
database, only where it lies.
"""

import threading
import time
from pathlib import Path

import apsw

PAGES = 2_000  # WAL pages (16 MB) to copy, from which on the thread looks for a pause of the writer
QUIET = 0.005  # seconds without a commit that are one
LARGE = 8_000  # WAL pages (64 MB) after which the thread waits no longer and the writer helps it ...
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
        self._at = 0.0  # when that was
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
        self._last, self._at = pages, time.monotonic()
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
        """Until the writer has been quiet for a while, or there is no more time to wait."""
        while self._last < LARGE and (left := self._at + QUIET - time.monotonic()) > 0:
            if self._closing.wait(left):
                break


def _copy(db: apsw.Connection) -> int:
    """Copy what can be copied without waiting for anybody; pages copied of the WAL."""
    try:
        return db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    except apsw.Error:  # busy, or no space: commits go on in the WAL, a later one tries again
        return 0
