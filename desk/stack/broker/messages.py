"""Commands on messages and offsets: send, poll, get, store and delete an offset."""

from collections.abc import Sequence

import xxhash

from desk.stack.broker import batches
from desk.stack.broker.catalog import OPEN_TOPIC, OWN_STREAM
from desk.stack.broker.state import Broker, Session, group_key
from desk.stack.broker.topology import ConsumerKey, Partition, Topic
from desk.stack.wire.codes import RESYNC, Code, Refused, Status
from desk.stack.wire.messages import (
    ConsumerKind,
    OffsetRef,
    Partitioning,
    Poll,
    SendTarget,
    Strategy,
    decode_offset,
    decode_poll,
    decode_send,
    encode_offset,
    encode_polled,
    encode_sent,
)


def send(broker: Broker, _session: Session, body: bytes) -> bytes:
    target, batch = decode_send(body)
    stream = broker.topology.stream(target.stream)
    topic = stream.topic(target.topic)
    if stream.name == OWN_STREAM and topic.name != OPEN_TOPIC:
        raise Refused(Status.UNAUTHORIZED)
    partition = topic.partition(_pick(topic, target))
    base = broker.append(stream, topic, partition, batch)
    return encode_sent(stream.id, topic.id, partition.id, base)


def _pick(topic: Topic, target: SendTarget) -> int:
    """The SDK always sends a partition; the other two are for clients that leave the choice to the server."""
    if target.partitioning is Partitioning.PARTITION:
        return target.partition
    if not topic.partitions:
        raise Refused(Status.PARTITION_NOT_FOUND)
    if target.partitioning is Partitioning.KEY:
        return xxhash.xxh32_intdigest(target.key, seed=0) % len(topic.partitions)
    topic.turn += 1
    return (topic.turn - 1) % len(topic.partitions)


def poll(broker: Broker, session: Session, body: bytes) -> Sequence[bytes]:
    wanted = decode_poll(body)
    topic = broker.topology.topic(wanted.stream, wanted.topic)
    group = None
    if wanted.kind is ConsumerKind.GROUP:
        if wanted.partition is None:
            return [encode_polled(0, 0, 0)]
        number = topic.group(wanted.consumer)
        group = None if number is None else broker.group(topic, number)
        if group is None or not group.may_poll(session.client, wanted.partition):
            topic.partition(wanted.partition)
            return [encode_polled(RESYNC, 0, 0)]
        consumer = group_key(number)
    else:
        consumer = (int(ConsumerKind.CONSUMER), wanted.consumer)
    partition = topic.partition(wanted.partition or 0)
    start = _start(broker, partition, consumer, wanted)
    parts, served, last = batches.poll(broker.db, partition, start, wanted.count)
    if served:
        if group is not None:
            group.note_served(partition.id, last)
        if wanted.auto_commit and last > partition.offsets.get(consumer, -1):
            with broker.store.transaction():
                broker.topology.store_offset(partition, consumer, last)
            if group is not None:
                group.committed(partition.id, last)
    return [encode_polled(partition.id, partition.current, served), *parts]


def _start(broker: Broker, partition: Partition, consumer: ConsumerKey, wanted: Poll) -> int:
    match wanted.strategy:
        case Strategy.OFFSET:
            return wanted.value
        case Strategy.TIMESTAMP:
            return batches.first_at(broker.db, partition, "timestamp", wanted.value)[0]
        case Strategy.FIRST:
            return partition.first
        case Strategy.LAST:
            return max(partition.next - wanted.count, 0)
        case Strategy.NEXT:
            return partition.offsets.get(consumer, -1) + 1


def get_offset(broker: Broker, _session: Session, body: bytes) -> bytes:
    """Empty when none is stored or nothing is there to store one for; a group's needs no membership."""
    wanted = decode_offset(body)
    try:
        _, partition, consumer = _resolve(broker, wanted)
    except Refused as refused:
        if refused.status is Status.PARTITION_NOT_FOUND:
            raise
        return b""
    stored = partition.offsets.get(consumer)
    return b"" if stored is None else encode_offset(partition.id, partition.current, stored)


def store_offset(broker: Broker, session: Session, body: bytes) -> bytes:
    """May rewind."""
    wanted = decode_offset(body, stored=True, acknowledged=True)
    topic, partition, consumer = _resolve(broker, wanted)
    _may_commit(broker, session, wanted, topic, partition, consumer)
    if wanted.offset >= partition.next:
        raise Refused(Status.INVALID_OFFSET)
    broker.topology.store_offset(partition, consumer, wanted.offset)
    if wanted.kind is ConsumerKind.GROUP:
        broker.group(topic, consumer[1]).committed(partition.id, wanted.offset)
    return b""


def delete_offset(broker: Broker, session: Session, body: bytes) -> bytes:
    wanted = decode_offset(body, acknowledged=True)
    topic, partition, consumer = _resolve(broker, wanted)
    _may_commit(broker, session, wanted, topic, partition, consumer)
    if consumer not in partition.offsets:
        raise Refused(Status.OFFSET_NOT_FOUND)
    broker.topology.delete_offset(partition, consumer)
    return b""


def _resolve(broker: Broker, wanted: OffsetRef) -> tuple[Topic, Partition, ConsumerKey]:
    topic = broker.topology.topic(wanted.stream, wanted.topic)
    partition = topic.partition(wanted.partition or 0)
    if wanted.kind is ConsumerKind.CONSUMER:
        return topic, partition, (int(ConsumerKind.CONSUMER), wanted.consumer)
    number = topic.group(wanted.consumer)
    if number is None:
        raise Refused(Status.NOT_OWNED)
    return topic, partition, group_key(number)


def _may_commit(
    broker: Broker,
    session: Session,
    wanted: OffsetRef,
    topic: Topic,
    partition: Partition,
    consumer: ConsumerKey,
) -> None:
    if wanted.kind is ConsumerKind.CONSUMER:
        return
    if wanted.partition is None:
        raise Refused(Status.INVALID_IDENTIFIER)
    if not broker.group(topic, consumer[1]).may_commit(session.client, partition.id):
        raise Refused(Status.NOT_OWNED)


READS = {Code.POLL: poll, Code.OFFSET: get_offset}
WRITES = {Code.SEND: send, Code.STORE_OFFSET: store_offset, Code.DELETE_OFFSET: delete_offset}
