"""Commands on consumer groups."""

import time

from desk.stack.broker.state import Broker, Session, group_key
from desk.stack.broker.topology import Topic
from desk.stack.wire.codes import Code, Refused, Status
from desk.stack.wire.messages import (
    decode_create_group,
    decode_group,
    decode_topic,
    encode_assignment,
    encode_group,
    encode_members,
)


def get_group(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_group(body)
    topic = broker.topology.topic(wanted.stream, wanted.topic)
    number = topic.group(wanted.group)
    return b"" if number is None else _details(broker, topic, number)


def get_groups(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_topic(body)
    topic = broker.topology.topic(wanted.stream, wanted.topic)
    return b"".join(_row(broker, topic, number) for number in sorted(topic.groups))


def create_group(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_create_group(body)
    topic = broker.topology.topic(wanted.stream, wanted.topic)
    return _details(broker, topic, broker.topology.create_group(topic, str(wanted.group)))


def delete_group(broker: Broker, _session: Session, body: bytes) -> bytes:
    topic, number = _find(broker, body)
    broker.topology.delete_group(topic, number)
    broker.groups.drop(topic.key, number)
    return b""


def join_group(broker: Broker, session: Session, body: bytes) -> bytes:
    topic, number = _find(broker, body)
    key = group_key(number)
    stored = {row.id: row.offsets[key] for row in topic.partitions if key in row.offsets}
    broker.group(topic, number).join(session.client, stored, time.monotonic())
    return b""


def leave_group(broker: Broker, session: Session, body: bytes) -> bytes:
    topic, number = _find(broker, body)
    if not broker.group(topic, number).leave(session.client):
        raise Refused(Status.MEMBER_NOT_FOUND)
    return b""


def sync_group(broker: Broker, session: Session, body: bytes) -> bytes:
    """The caller's assignment; empty says: you are no member, join again."""
    try:
        topic, number = _find(broker, body)
    except Refused as refused:
        if refused.status is Status.INVALID_COMMAND:
            raise
        return b""
    assignment = broker.group(topic, number).sync(session.client)
    return b"" if assignment is None else encode_assignment(*assignment)


def _find(broker: Broker, body: bytes) -> tuple[Topic, int]:
    wanted = decode_group(body)
    topic = broker.topology.topic(wanted.stream, wanted.topic)
    number = topic.group(wanted.group)
    if number is None:
        raise Refused(Status.GROUP_NOT_FOUND)
    return topic, number


def _row(broker: Broker, topic: Topic, number: int) -> bytes:
    rows = broker.group(topic, number).rows()
    return encode_group(number, len(topic.partitions), topic.groups[number], rows)


def _details(broker: Broker, topic: Topic, number: int) -> bytes:
    return _row(broker, topic, number) + encode_members(broker.group(topic, number).rows())


# joining and leaving change memory only: memberships are of the connections, not of the file
READS = {
    Code.GROUP: get_group,
    Code.GROUPS: get_groups,
    Code.JOIN_GROUP: join_group,
    Code.LEAVE_GROUP: leave_group,
    Code.SYNC_GROUP: sync_group,
}
WRITES = {Code.CREATE_GROUP: create_group, Code.DELETE_GROUP: delete_group}
