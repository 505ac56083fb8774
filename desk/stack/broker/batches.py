"""The log itself: a batch is one row, appended and read back as it came, trimmed to the offsets asked for."""

from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from desk.stack.broker.topology import OFFSET_BITS, Partition, batch_size, now
from desk.stack.wire.iggy import Batch, Record, decode_records, encode_batch_header, frame_ends

LARGEST_POLL = 64 * 1024 * 1024  # bytes of one poll's reply, about; a poll may always return fewer than asked

_APPEND = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)"
_FROM = """
SELECT id, count, timestamp, origin, frames FROM batches
WHERE id >= coalesce((SELECT max(id) FROM batches WHERE id >= :low AND id <= :start), :low) AND id < :high
ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """One row: `count` messages from offset `base` on."""

    base: int
    count: int
    timestamp: int
    origin: int
    frames: bytes
    has_headers: bool = True  # False only where it is known that no message has user headers


def append(db: apsw.Connection, partition: Partition, batch: Batch) -> Stored:
    """Append at the end; broker time is stamped, never earlier than the batch before."""
    base, timestamp = partition.next, max(now(), partition.timestamp)
    written = partition.written + batch_size(batch.frames)
    row = partition.key << OFFSET_BITS | base
    db.execute(_APPEND, (row, batch.count, timestamp, batch.origin, written, batch.frames))
    partition.next = base + batch.count
    partition.timestamp, partition.written = timestamp, written
    return Stored(base, batch.count, timestamp, batch.origin, batch.frames, batch.has_headers)


def stored(db: apsw.Connection, partition: Partition, start: int) -> Iterator[Stored]:
    """Batches from the one that holds offset `start` on."""
    low = partition.key << OFFSET_BITS
    bounds = {"low": low, "start": low + start, "high": low + (1 << OFFSET_BITS)}
    for row, count, timestamp, origin, frames in db.execute(_FROM, bounds):
        if row - low + count > start:
            yield Stored(row - low, count, timestamp, origin, frames)


def poll(db: apsw.Connection, partition: Partition, start: int, count: int) -> tuple[list[bytes], int, int]:
    """(batch headers and frames, how many messages, last offset) for at most `count` messages from `start` on."""
    parts: list[bytes] = []
    served, last, size = 0, -1, 0
    start = max(start, partition.first)
    if not count or start >= partition.next:
        return parts, served, last
    for batch in stored(db, partition, start):
        low = max(start - batch.base, 0)
        high = min(batch.count, low + count - served)
        frames = batch.frames
        if high - low < batch.count:
            ends = frame_ends(frames, batch.count)
            frames = frames[ends[low] : ends[high]]
        parts.append(
            encode_batch_header(
                partition.id, batch.base, batch.timestamp, batch.origin, len(frames), high - low
            )
        )
        parts.append(frames)
        served += high - low
        last = batch.base + high - 1
        size += len(frames)
        if served >= count or size >= LARGEST_POLL:
            break
    return parts, served, last


def first_at(db: apsw.Connection, partition: Partition, column: str, value: int) -> tuple[int, int]:
    """(base, count) of the first batch whose `column` is at least `value`; (next offset, 0) when there is none.

    `column` is timestamp (us) or written (bytes): both grow from batch to batch, so this is a binary search.
    """
    key = partition.key << OFFSET_BITS
    search = f"SELECT id, count, {column} FROM batches WHERE id >= ? AND id <= ? ORDER BY id DESC LIMIT 1"
    low, high = partition.first, partition.next
    found = high, 0
    while low < high:
        row, count, here = db.execute(search, (key, key + (low + high) // 2)).get
        base = row - key
        if here < value:
            low = base + count
        else:
            high = base
            found = base, count
    return found


def records(db: apsw.Connection, partition: Partition, start: int) -> Iterator[Record]:
    """Decoded messages from offset `start` on."""
    start = max(start, partition.first)
    for batch in stored(db, partition, start):
        yield from decode_records(batch.frames, batch.count, batch.base, batch.timestamp, start)


def trim(db: apsw.Connection, partition: Partition, first: int) -> None:
    """Take whole batches off the front: the offset `first` must be the base of one, or the end."""
    key = partition.key << OFFSET_BITS
    row = db.execute(
        "SELECT written FROM batches WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1", (key, key + first)
    ).fetchone()
    if row is None:
        return
    db.execute("DELETE FROM batches WHERE id >= ? AND id < ?", (key, key + first))
    db.execute(
        "UPDATE partitions SET next = ?, first = ?, trimmed = ?, timestamp = ? WHERE key = ?",
        (first, first, row[0], partition.timestamp, partition.key),
    )
    partition.first, partition.trimmed = first, row[0]
