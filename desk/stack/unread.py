"""What SQLite leaves unread in a WAL: it stops at the first frame that is damaged and says nothing of the rest.

A process that was killed leaves no commit behind such a frame, for the frames are written in order. A disk that lost
a bit does, and a loss of power may.
"""

import struct
from pathlib import Path

import apsw

_HEADER = struct.Struct(">8xI4x8s8x")  # of the file: page size, salts
_FRAME = struct.Struct(">4xI8s8x")  # of a frame: pages of the file after a commit, else 0; salts


def unread_commits(db: apsw.Connection, wal: Path) -> int:
    """How many commits `wal` holds behind the frames that `db`, which has read it, has accepted."""
    length = wal.stat().st_size
    if length < _HEADER.size:
        return 0
    accepted = max(0, db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])
    commits = 0
    with open(wal, "rb", buffering=0) as file:
        page, salts = _HEADER.unpack(file.read(_HEADER.size))
        size = _FRAME.size + page
        for number in range(accepted, (length - _HEADER.size) // size):
            file.seek(_HEADER.size + number * size)
            pages, marked = _FRAME.unpack(file.read(_FRAME.size))
            commits += pages > 0 and marked == salts  # other salts: from before the WAL started over
    return commits
