"""Streams, topics, partitions and group names: what lies in the file, mirrored in memory.

A change is written first and mirrored after; when its transaction fails the engine calls `load` again. Loading
takes time with the number of partitions and offsets, never with the number of records.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import apsw

from desk.stack.store import Store
from desk.stack.wire.codes import U64_MAX, Refused, Status
from desk.stack.wire.iggy import BATCH_HEADER, Headers, decode_headers, encode_headers
from desk.stack.wire.messages import ConsumerKind, PartitionRecord, StreamRecord, TopicRecord
from desk.stack.wire.scalars import Identifier, option_number

MOST_PARTITIONS = 1_000
OFFSET_BITS = 40  # a batch's row number is partition key << 40 | base offset: clustered without an index

SCHEMA = """
CREATE TABLE IF NOT EXISTS streams (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id INTEGER NOT NULL,
    name TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    options BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS topics (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    stream INTEGER NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    options BLOB NOT NULL,
    next_group INTEGER NOT NULL DEFAULT 0,
    UNIQUE (stream, name)
);
-- next, first, trimmed, timestamp: where the partition stood when records were last taken off its front;
-- newer batches (table batches) carry these numbers on
CREATE TABLE IF NOT EXISTS partitions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    topic INTEGER NOT NULL,
    id INTEGER NOT NULL,
    created INTEGER NOT NULL,
    next INTEGER NOT NULL DEFAULT 0,
    first INTEGER NOT NULL DEFAULT 0,
    trimmed INTEGER NOT NULL DEFAULT 0,
    timestamp INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, id)
);
CREATE TABLE IF NOT EXISTS groups (
    topic INTEGER NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (topic, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS offsets (
    partition INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    consumer NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (partition, kind, consumer)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    timestamp INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    written INTEGER NOT NULL,
    frames BLOB NOT NULL
);
"""

ConsumerKey = tuple[int, Identifier]
"""(1, consumer name or number) or (2, group number)."""


@dataclass(slots=True)
class Partition:
    """Offsets [first, next) are kept. `written` and `trimmed` count bytes ever appended and ever taken off."""

    key: int
    id: int
    created: int
    next: int = 0
    first: int = 0
    trimmed: int = 0
    written: int = 0
    timestamp: int = 0  # of the newest batch: broker time never runs backwards within a partition
    offsets: dict[ConsumerKey, int] = field(default_factory=dict)

    @property
    def current(self) -> int:
        """The last offset, 0 when empty as well (so says the protocol)."""
        return max(self.next - 1, 0)

    def record(self) -> PartitionRecord:
        return PartitionRecord(
            self.id, self.created, self.current, self.written - self.trimmed, self.next - self.first
        )


@dataclass(slots=True)
class Topic:
    key: int
    id: int
    name: str
    created: int
    options: dict[str, tuple[str, bytes]]
    next_group: int = 0
    partitions: list[Partition] = field(default_factory=list)
    groups: dict[int, str] = field(default_factory=dict)
    turn: int = 0  # balanced publishing: whose turn it is

    @property
    def expiry(self) -> int:
        """Microseconds a message is kept; U64_MAX for ever (0 means the server's default: for ever)."""
        return option_number(self.options, "message_expiry") or U64_MAX

    @property
    def max_size(self) -> int:
        """Bytes the topic may hold; U64_MAX without a limit (0 likewise)."""
        return option_number(self.options, "max_topic_size") or U64_MAX

    @property
    def numbers(self) -> list[int]:
        return [partition.id for partition in self.partitions]

    def partition(self, number: int) -> Partition:
        if number < len(self.partitions):
            return self.partitions[number]
        raise Refused(Status.PARTITION_NOT_FOUND)

    def group(self, wanted: Identifier) -> int | None:
        """The group's number, None when there is none."""
        if isinstance(wanted, int):
            return wanted if wanted in self.groups else None
        return next((number for number, title in self.groups.items() if title == wanted), None)

    def record(self) -> TopicRecord:
        rows = [partition.record() for partition in self.partitions]
        gzip = self.options.get("compression_algorithm", ("", b""))[1].lower() == b"gzip"
        return TopicRecord(
            id=self.id,
            created=self.created,
            partitions=len(rows),
            expiry=self.expiry,
            compression=2 if gzip else 1,
            max_size=self.max_size,
            size=sum(row.size for row in rows),
            messages=sum(row.messages for row in rows),
            name=self.name,
            options=encode_headers(self.options),
        )


@dataclass(slots=True)
class Stream:
    key: int
    id: int
    name: str
    created: int
    options: dict[str, tuple[str, bytes]]
    topics: dict[int, Topic] = field(default_factory=dict)
    names: dict[str, Topic] = field(default_factory=dict)

    def topic(self, wanted: Identifier) -> Topic:
        found = self.topics.get(wanted) if isinstance(wanted, int) else self.names.get(wanted)
        if found is None:
            raise Refused(Status.TOPIC_NOT_FOUND)
        return found

    def in_order(self) -> list[Topic]:
        return [self.topics[number] for number in sorted(self.topics)]

    def record(self) -> StreamRecord:
        rows = [topic.record() for topic in self.topics.values()]
        size, messages = sum(row.size for row in rows), sum(row.messages for row in rows)
        options = encode_headers(self.options)
        return StreamRecord(self.id, self.created, len(rows), size, messages, self.name, options)


class Topology:
    """All streams. Writers call inside a transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db: apsw.Connection = store.db
        self.load()

    def load(self) -> None:
        """Mirror the file anew."""
        self.streams: dict[int, Stream] = {}
        self.names: dict[str, Stream] = {}
        self._created = self._store.meta("created")
        by_key: dict[int, Stream] = {}
        for key, number, name, created, options in self._db.execute("SELECT * FROM streams"):
            by_key[key] = self._add(Stream(key, number, name, created, decode_headers(options)))
        topics: dict[int, Topic] = {}
        for key, stream, number, name, created, options, next_group in self._db.execute(
            "SELECT * FROM topics"
        ):
            topics[key] = Topic(key, number, name, created, decode_headers(options), next_group)
            _add_topic(by_key[stream], topics[key])
        partitions: dict[int, Partition] = {}
        rows = self._db.execute(
            "SELECT key, topic, id, created, next, first, trimmed, timestamp FROM partitions ORDER BY topic, id"
        ).fetchall()
        for key, topic, number, created, upcoming, first, trimmed, timestamp in rows:
            partition = Partition(key, number, created, upcoming, first, trimmed, trimmed, timestamp)
            self._carry_on(partition)
            partitions[key] = partition
            topics[topic].partitions.append(partition)
        for topic, number, name in self._db.execute("SELECT topic, id, name FROM groups"):
            topics[topic].groups[number] = name
        for key, kind, consumer, value in self._db.execute("SELECT * FROM offsets"):
            partitions[key].offsets[kind, consumer] = value

    def _carry_on(self, partition: Partition) -> None:
        """Where the newest batch left the partition."""
        low = partition.key << OFFSET_BITS
        row = self._db.execute(
            "SELECT id, count, timestamp, written FROM batches WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1",
            (low, low + (1 << OFFSET_BITS)),
        ).fetchone()
        if row:
            partition.next = row[0] - low + row[1]
            partition.timestamp, partition.written = row[2], row[3]

    # look up ------------------------------------------------------------------------------------------------

    def stream(self, wanted: Identifier) -> Stream:
        found = self.streams.get(wanted) if isinstance(wanted, int) else self.names.get(wanted)
        if found is None:
            raise Refused(Status.STREAM_NOT_FOUND)
        return found

    def topic(self, stream: Identifier, topic: Identifier) -> Topic:
        return self.stream(stream).topic(topic)

    def in_order(self) -> list[Stream]:
        return [self.streams[number] for number in sorted(self.streams)]

    def topics(self) -> Iterator[tuple[Stream, Topic]]:
        for stream in self.streams.values():
            for topic in stream.topics.values():
                yield stream, topic

    # streams ------------------------------------------------------------------------------------------------

    def create_stream(self, name: str, options: Headers) -> Stream:
        if name in self.names:
            raise Refused(Status.STREAM_EXISTS)
        number, created = _free(self.streams), self._moment()
        self._db.execute(
            "INSERT INTO streams (id, name, created, options) VALUES (?, ?, ?, ?)",
            (number, name, created, encode_headers(options)),
        )
        return self._add(Stream(self._db.last_insert_rowid(), number, name, created, dict(options)))

    def update_stream(self, stream: Stream, name: str, options: Headers) -> None:
        if self.names.get(name, stream) is not stream:
            raise Refused(Status.STREAM_EXISTS)
        merged = {**stream.options, **options}
        self._db.execute(
            "UPDATE streams SET name = ?, options = ? WHERE key = ?",
            (name, encode_headers(merged), stream.key),
        )
        del self.names[stream.name]
        stream.name, stream.options = name, merged
        self.names[name] = stream

    def delete_stream(self, stream: Stream) -> None:
        for topic in stream.in_order():
            self.delete_topic(stream, topic)
        self._db.execute("DELETE FROM streams WHERE key = ?", (stream.key,))
        del self.streams[stream.id], self.names[stream.name]

    # topics -------------------------------------------------------------------------------------------------

    def create_topic(self, stream: Stream, name: str, partitions: int, options: Headers) -> Topic:
        if partitions > MOST_PARTITIONS:
            raise Refused(Status.TOO_MANY_PARTITIONS)
        if name in stream.names:
            raise Refused(Status.TOPIC_EXISTS)
        if not partitions:
            raise Refused(Status.BAD_PARTITIONS)
        number, created = _free(stream.topics), self._moment()
        self._db.execute(
            "INSERT INTO topics (stream, id, name, created, options) VALUES (?, ?, ?, ?, ?)",
            (stream.key, number, name, created, encode_headers(options)),
        )
        topic = Topic(self._db.last_insert_rowid(), number, name, created, dict(options))
        self._add_partitions(topic, partitions)
        return _add_topic(stream, topic)

    def update_topic(self, stream: Stream, topic: Topic, name: str, options: Headers) -> None:
        if stream.names.get(name, topic) is not topic:
            raise Refused(Status.TOPIC_EXISTS)
        merged = {**topic.options, **options}
        self._db.execute(
            "UPDATE topics SET name = ?, options = ? WHERE key = ?", (name, encode_headers(merged), topic.key)
        )
        del stream.names[topic.name]
        topic.name, topic.options = name, merged
        stream.names[name] = topic

    def delete_topic(self, stream: Stream, topic: Topic) -> None:
        for partition in topic.partitions:
            self._delete_partition(partition)
        self._db.execute("DELETE FROM groups WHERE topic = ?", (topic.key,))
        self._db.execute("DELETE FROM topics WHERE key = ?", (topic.key,))
        del stream.topics[topic.id], stream.names[topic.name]

    # partitions ---------------------------------------------------------------------------------------------

    def add_partitions(self, topic: Topic, count: int) -> None:
        if not count:
            raise Refused(Status.BAD_PARTITIONS)
        if len(topic.partitions) + count > MOST_PARTITIONS:
            raise Refused(Status.TOO_MANY_PARTITIONS)
        self._add_partitions(topic, count)

    def delete_partitions(self, topic: Topic, count: int) -> None:
        """The last `count` go, with their records."""
        if not 0 < count <= len(topic.partitions):
            raise Refused(Status.BAD_PARTITIONS)
        for _ in range(count):
            self._delete_partition(topic.partitions[-1])
            topic.partitions.pop()

    def purge(self, topic: Topic) -> None:
        """Records and consumer offsets go, groups stay, offsets start at 0 again."""
        for partition in topic.partitions:
            _delete_rows(self._db, partition)
            self._db.execute(
                "UPDATE partitions SET next = 0, first = 0, trimmed = 0 WHERE key = ?", (partition.key,)
            )
            partition.next = partition.first = partition.trimmed = partition.written = 0
            partition.offsets.clear()

    def _add_partitions(self, topic: Topic, count: int) -> None:
        created = self._moment()
        start = len(topic.partitions)
        for number in range(start, start + count):
            self._db.execute(
                "INSERT INTO partitions (topic, id, created) VALUES (?, ?, ?)", (topic.key, number, created)
            )
            topic.partitions.append(Partition(self._db.last_insert_rowid(), number, created))

    def _delete_partition(self, partition: Partition) -> None:
        _delete_rows(self._db, partition)
        self._db.execute("DELETE FROM partitions WHERE key = ?", (partition.key,))

    # groups and offsets -------------------------------------------------------------------------------------

    def create_group(self, topic: Topic, name: str) -> int:
        """Group numbers are never used again within a topic."""
        if topic.group(name) is not None:
            raise Refused(Status.GROUP_EXISTS)
        number = topic.next_group
        self._db.execute("INSERT INTO groups VALUES (?, ?, ?)", (topic.key, number, name))
        self._db.execute("UPDATE topics SET next_group = ? WHERE key = ?", (number + 1, topic.key))
        topic.next_group = number + 1
        topic.groups[number] = name
        return number

    def delete_group(self, topic: Topic, number: int) -> None:
        """With the offsets it stored."""
        self._db.execute("DELETE FROM groups WHERE topic = ? AND id = ?", (topic.key, number))
        for partition in topic.partitions:
            if (ConsumerKind.GROUP, number) in partition.offsets:
                self.delete_offset(partition, (ConsumerKind.GROUP, number))
        del topic.groups[number]

    def store_offset(self, partition: Partition, consumer: ConsumerKey, value: int) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?)", (partition.key, *consumer, value)
        )
        partition.offsets[consumer] = value

    def delete_offset(self, partition: Partition, consumer: ConsumerKey) -> None:
        self._db.execute(
            "DELETE FROM offsets WHERE partition = ? AND kind = ? AND consumer = ?",
            (partition.key, *consumer),
        )
        del partition.offsets[consumer]

    # ----------------------------------------------------------------------------------------------------------

    def _add(self, stream: Stream) -> Stream:
        self.streams[stream.id] = self.names[stream.name] = stream
        return stream

    def _moment(self) -> int:
        """Now in microseconds, never the same twice, also over restarts: a topic's generation."""
        self._created = max(now(), self._created + 1)
        self._store.set_meta("created", self._created)
        return self._created


def now() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1_000


def batch_size(frames: bytes) -> int:
    """Bytes a stored batch counts for."""
    return BATCH_HEADER + len(frames)


def _add_topic(stream: Stream, topic: Topic) -> Topic:
    stream.topics[topic.id] = stream.names[topic.name] = topic
    return topic


def _free(taken: dict[int, object]) -> int:
    """The lowest number that is free."""
    return next(number for number in range(len(taken) + 1) if number not in taken)


def _delete_rows(db: apsw.Connection, partition: Partition) -> None:
    low = partition.key << OFFSET_BITS
    db.execute("DELETE FROM batches WHERE id >= ? AND id < ?", (low, low + (1 << OFFSET_BITS)))
    db.execute("DELETE FROM offsets WHERE partition = ?", (partition.key,))
