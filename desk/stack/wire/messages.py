"""Bodies of Iggy commands: request bytes -> records, records -> reply bytes. No state, no sockets.

A body that is cut, too long or odd is Refused(INVALID_COMMAND).
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from desk.stack.wire.codes import PROTOCOL_VERSION, SERVER_VERSION, Refused, Status
from desk.stack.wire.iggy import Batch, MalformedBatch, decode_batch
from desk.stack.wire.scalars import U32, Identifier, Reader, block, name


class ConsumerKind(IntEnum):
    """Who reads."""

    CONSUMER = 1
    GROUP = 2


class Strategy(IntEnum):
    """Where a poll starts."""

    OFFSET = 1
    TIMESTAMP = 2
    FIRST = 3
    LAST = 4
    NEXT = 5


class Partitioning(IntEnum):
    """How a publisher picks a partition."""

    BALANCED = 1
    PARTITION = 2
    KEY = 3


# requests ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Login:
    """A Register body: a user and password, or a token."""

    version: int
    sdk: str
    user: str | None
    password: str | None
    token: str | None


@dataclass(frozen=True, slots=True)
class TopicRef:
    stream: Identifier
    topic: Identifier


@dataclass(frozen=True, slots=True)
class GroupRef:
    stream: Identifier
    topic: Identifier
    group: Identifier


@dataclass(frozen=True, slots=True)
class CreateTopic:
    stream: Identifier
    partitions: int
    name: str
    options: bytes


@dataclass(frozen=True, slots=True)
class Rename:
    """Update of a stream (`topic` is None) or a topic."""

    stream: Identifier
    topic: Identifier | None
    name: str
    options: bytes


@dataclass(frozen=True, slots=True)
class SendTarget:
    stream: Identifier
    topic: Identifier
    partitioning: Partitioning
    key: bytes

    @property
    def partition(self) -> int:
        return U32.unpack(self.key)[0]


@dataclass(frozen=True, slots=True)
class Poll:
    kind: ConsumerKind
    consumer: Identifier
    stream: Identifier
    topic: Identifier
    partition: int | None
    strategy: Strategy
    value: int
    count: int
    auto_commit: bool


@dataclass(frozen=True, slots=True)
class OffsetRef:
    """Get, store or delete of a consumer's offset; `offset` only when storing."""

    kind: ConsumerKind
    consumer: Identifier
    stream: Identifier
    topic: Identifier
    partition: int | None
    offset: int = 0


def decode_login(body: bytes) -> Login:
    """Both login shapes ride one operation and nothing marks which: user and password first, else token."""
    reader = Reader(body)
    version, sdk, _sdk_version = reader.u32(), reader.name(), reader.name()
    start = reader.at

    def texts(count: int) -> list[str] | None:
        tail = Reader(body, start)
        try:
            found = [tail.short_text() for _ in range(count)]
            tail.take(tail.u32())
            tail.end()
        except Refused:
            return None
        return found

    if credentials := texts(2):
        return Login(version, sdk, credentials[0], credentials[1], None)
    if token := texts(1):
        return Login(version, sdk, None, None, token[0])
    raise Refused(Status.INVALID_COMMAND)


def decode_identifier(body: bytes) -> Identifier:
    reader = Reader(body)
    value = reader.identifier()
    reader.end()
    return value


def decode_topic(body: bytes) -> TopicRef:
    reader = Reader(body)
    value = TopicRef(reader.identifier(), reader.identifier())
    reader.end()
    return value


def decode_group(body: bytes) -> GroupRef:
    reader = Reader(body)
    value = GroupRef(reader.identifier(), reader.identifier(), reader.identifier())
    reader.end()
    return value


def decode_create_group(body: bytes) -> GroupRef:
    """The group is always a name here."""
    reader = Reader(body)
    value = GroupRef(reader.identifier(), reader.identifier(), reader.name())
    reader.end()
    return value


def decode_create_stream(body: bytes) -> tuple[str, bytes]:
    """(name, options block)"""
    reader = Reader(body)
    return reader.name(), reader.options()


def decode_create_topic(body: bytes) -> CreateTopic:
    reader = Reader(body)
    return CreateTopic(reader.identifier(), reader.u32(), reader.name(), reader.options())


def decode_rename_stream(body: bytes) -> Rename:
    reader = Reader(body)
    return Rename(reader.identifier(), None, reader.name(), reader.options())


def decode_rename_topic(body: bytes) -> Rename:
    reader = Reader(body)
    return Rename(reader.identifier(), reader.identifier(), reader.name(), reader.options())


def decode_partition_count(body: bytes) -> tuple[TopicRef, int]:
    reader = Reader(body)
    value = TopicRef(reader.identifier(), reader.identifier()), reader.u32()
    reader.end()
    return value


@lru_cache(maxsize=4096)
def _send_target(metadata: bytes) -> SendTarget:
    reader = Reader(metadata)
    stream, topic = reader.identifier(), reader.identifier()
    kind, key = reader.u8(), reader.take(reader.u8())
    reader.u32()
    reader.end()
    fits = {
        Partitioning.BALANCED: not key,
        Partitioning.PARTITION: len(key) == 4,
        Partitioning.KEY: bool(key),
    }
    if not fits.get(kind):
        raise Refused(Status.INVALID_COMMAND)
    return SendTarget(stream, topic, Partitioning(kind), key)


def decode_send(body: bytes) -> tuple[SendTarget, Batch]:
    """Where to, and the messages. The metadata in front repeats from call to call, so it is decoded once."""
    size = Reader(body).u32()
    if size > len(body) - 4 or size > 1024:
        raise Refused(Status.INVALID_COMMAND)
    try:
        return _send_target(body[4 : 4 + size]), decode_batch(body, 4 + size)
    except MalformedBatch as error:
        raise Refused(Status.INVALID_COMMAND) from error


def decode_poll(body: bytes) -> Poll:
    """An idle consumer sends the same body again and again, so it is decoded once."""
    if len(body) > 2048:
        raise Refused(Status.INVALID_COMMAND)
    return _poll(body)


@lru_cache(maxsize=4096)
def _poll(body: bytes) -> Poll:
    reader = Reader(body)
    try:
        kind, consumer = ConsumerKind(reader.u8()), reader.identifier()
        stream, topic, partition = reader.identifier(), reader.identifier(), reader.optional_partition()
        strategy, value, count = Strategy(reader.u8()), reader.u64(), reader.u32()
    except ValueError as error:
        raise Refused(Status.INVALID_COMMAND) from error
    auto_commit = reader.u8() == 1
    reader.end()
    return Poll(kind, consumer, stream, topic, partition, strategy, value, count, auto_commit)


def decode_offset(body: bytes, *, stored: bool = False, acknowledged: bool = False) -> OffsetRef:
    """`stored`: an offset follows; `acknowledged`: then an ack byte, which changes nothing on one node."""
    reader = Reader(body)
    try:
        kind = ConsumerKind(reader.u8())
    except ValueError as error:
        raise Refused(Status.INVALID_COMMAND) from error
    consumer, stream, topic = reader.identifier(), reader.identifier(), reader.identifier()
    partition = reader.optional_partition()
    offset = reader.u64() if stored else 0
    if acknowledged:
        reader.u8()
    reader.end()
    return OffsetRef(kind, consumer, stream, topic, partition, offset)


# replies ----------------------------------------------------------------------------------------------------

_STREAM = struct.Struct("<IQIQQ")
_TOPIC = struct.Struct("<IQIQBQQQ")
_PARTITION = struct.Struct("<IQIQQQ")
_POLLED = struct.Struct("<IQI")
_SENT = struct.Struct("<IIIIQ")
_THREE = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class StreamRecord:
    id: int
    created: int
    topics: int
    size: int
    messages: int
    name: str
    options: bytes


@dataclass(frozen=True, slots=True)
class TopicRecord:
    id: int
    created: int
    partitions: int
    expiry: int
    compression: int
    max_size: int
    size: int
    messages: int
    name: str
    options: bytes


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    id: int
    created: int
    current: int
    size: int
    messages: int


@dataclass(frozen=True, slots=True)
class ClientRecord:
    id: int
    user: int | None
    address: str
    groups: Sequence[tuple[int, int, int]]


def encode_login(user: int, session: int) -> bytes:
    return struct.pack("<IQI", user, session, PROTOCOL_VERSION) + name(SERVER_VERSION)


def encode_stream(stream: StreamRecord, topics: Iterable[TopicRecord] = ()) -> bytes:
    head = _STREAM.pack(stream.id, stream.created, stream.topics, stream.size, stream.messages)
    return head + name(stream.name) + block(stream.options) + b"".join(map(encode_topic, topics))


def encode_topic(topic: TopicRecord, partitions: Iterable[PartitionRecord] = ()) -> bytes:
    head = _TOPIC.pack(
        topic.id,
        topic.created,
        topic.partitions,
        topic.expiry,
        topic.compression,
        topic.max_size,
        topic.size,
        topic.messages,
    )
    no_derived_options = block(b"")
    rows = b"".join(_PARTITION.pack(p.id, p.created, 1, p.current, p.size, p.messages) for p in partitions)
    return head + name(topic.name) + block(topic.options) + no_derived_options + rows


def encode_topics(topics: Sequence[TopicRecord]) -> bytes:
    return U32.pack(len(topics)) + b"".join(map(encode_topic, topics))


def encode_sent(stream: int, topic: int, partition: int, base: int) -> bytes:
    return _SENT.pack(1, stream, topic, partition, base)


def encode_polled(partition: int, current: int, count: int) -> bytes:
    """The head of a poll reply; batches follow."""
    return _POLLED.pack(partition, current, count)


def encode_offset(partition: int, current: int, stored: int) -> bytes:
    return struct.pack("<IQQ", partition, current, stored)


def encode_group(
    group: int, partitions: int, title: str, members: Sequence[tuple[int, Sequence[int]]]
) -> bytes:
    """`members` gives the count; use encode_members for their rows."""
    return _THREE.pack(group, partitions, len(members)) + name(title)


def encode_members(members: Sequence[tuple[int, Sequence[int]]]) -> bytes:
    """(member number, its partitions) each."""
    return b"".join(
        struct.pack(f"<II{len(partitions)}I", member, len(partitions), *partitions)
        for member, partitions in members
    )


def encode_assignment(generation: int, partitions: Sequence[int]) -> bytes:
    return struct.pack(f"<QI{len(partitions)}I", generation, len(partitions), *partitions)


def encode_cluster(host: str, port: int) -> bytes:
    """One healthy leader: a client then never redirects."""
    node = block(b"laser-desk") + block(host.encode()) + struct.pack("<HHHHBB", port, 0, 0, 0, 0, 0)
    return block(b"single-node") + U32.pack(1) + node


def encode_client(client: ClientRecord, *, memberships: bool = False) -> bytes:
    """`memberships`: the (stream, topic, group) rows too."""
    user = 0xFFFFFFFF if client.user is None else client.user
    head = struct.pack("<IIB", client.id, user, 1) + block(client.address.encode())
    rows = b"".join(_THREE.pack(*group) for group in client.groups) if memberships else b""
    return head + U32.pack(len(client.groups)) + rows


def encode_user(user: int, created: int, title: str, *, details: bool = False) -> bytes:
    """An active user without options; details add that there are no permissions of its own."""
    return struct.pack("<IQB", user, created, 1) + name(title) + U32.pack(0) + (bytes(4) if details else b"")
