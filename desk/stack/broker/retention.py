"""Topic expiry and size limits: what the background sweep takes off the front of partitions."""

from collections.abc import Iterable

import apsw

from desk.stack.broker.batches import first_at, trim
from desk.stack.broker.topology import Partition, Topic, now
from desk.stack.wire.codes import U64_MAX


def due(db: apsw.Connection, topics: Iterable[Topic]) -> list[tuple[Partition, int]]:
    """(partition, first offset to keep) wherever something has expired or is over its topic's size."""
    return [
        (partition, keep)
        for topic in topics
        if topic.expiry != U64_MAX or topic.max_size != U64_MAX
        for partition in topic.partitions
        if (keep := first_to_keep(db, topic, partition)) > partition.first
    ]


def first_to_keep(db: apsw.Connection, topic: Topic, partition: Partition) -> int:
    """Whole batches go: those stamped before the expiry, and the oldest above the partition's share of the size.

    The newest batch stays under a size limit, however large it is.
    """
    keep = partition.first
    if topic.expiry != U64_MAX:
        keep, _ = first_at(db, partition, "timestamp", now() - topic.expiry)
    excess = partition.written - topic.max_size // len(topic.partitions)
    if excess > partition.trimmed:
        base, count = first_at(db, partition, "written", excess)
        keep = max(keep, base if base + count == partition.next else base + count)
    return keep


def sweep(db: apsw.Connection, due: Iterable[tuple[Partition, int]]) -> None:
    """Trim; call inside a transaction."""
    for partition, keep in due:
        trim(db, partition, keep)
