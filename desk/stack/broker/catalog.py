"""Commands on streams, topics and partitions.

Reading one that is missing answers an empty body; listing below a missing parent is an error.
"""

from desk.stack.broker.state import Broker, Session
from desk.stack.broker.topology import Stream, Topic
from desk.stack.wire.codes import Code, Refused, Status
from desk.stack.wire.iggy import decode_headers
from desk.stack.wire.messages import (
    TopicRef,
    decode_create_stream,
    decode_create_topic,
    decode_identifier,
    decode_partition_count,
    decode_rename_stream,
    decode_rename_topic,
    decode_topic,
    encode_stream,
    encode_topic,
    encode_topics,
)

OWN_STREAM = "_agdx"  # the server's own stream: clients read it, and publish to one topic of it
OPEN_TOPIC = "control.commands"


def get_stream(broker: Broker, _session: Session, body: bytes) -> bytes:
    try:
        stream = broker.topology.stream(decode_identifier(body))
    except Refused as refused:
        return _nothing(refused)
    return encode_stream(stream.record(), [topic.record() for topic in stream.in_order()])


def get_streams(broker: Broker, _session: Session, _body: bytes) -> bytes:
    return b"".join(encode_stream(stream.record()) for stream in broker.topology.in_order())


def create_stream(broker: Broker, _session: Session, body: bytes) -> bytes:
    name, options = decode_create_stream(body)
    return encode_stream(broker.topology.create_stream(name, decode_headers(options)).record())


def update_stream(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_rename_stream(body)
    stream = _foreign(broker.topology.stream(wanted.stream))
    broker.topology.update_stream(stream, wanted.name, decode_headers(wanted.options))
    return b""


def delete_stream(broker: Broker, _session: Session, body: bytes) -> bytes:
    stream = _foreign(broker.topology.stream(decode_identifier(body)))
    keys = [topic.key for topic in stream.topics.values()]
    broker.topology.delete_stream(stream)
    for key in keys:
        broker.groups.drop(key)
    return b""


def purge_stream(broker: Broker, _session: Session, body: bytes) -> bytes:
    for topic in _foreign(broker.topology.stream(decode_identifier(body))).in_order():
        _purge(broker, topic)
    return b""


def get_topic(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_topic(body)
    try:
        topic = broker.topology.topic(wanted.stream, wanted.topic)
    except Refused as refused:
        return _nothing(refused)
    return _details(topic)


def get_topics(broker: Broker, _session: Session, body: bytes) -> bytes:
    stream = broker.topology.stream(decode_identifier(body))
    return encode_topics([topic.record() for topic in stream.in_order()])


def create_topic(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_create_topic(body)
    stream = broker.topology.stream(wanted.stream)
    options = decode_headers(wanted.options)
    return _details(broker.topology.create_topic(stream, wanted.name, wanted.partitions, options))


def update_topic(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted = decode_rename_topic(body)
    stream = _foreign(broker.topology.stream(wanted.stream))
    topic = stream.topic(wanted.topic)
    broker.topology.update_topic(stream, topic, wanted.name, decode_headers(wanted.options))
    return b""


def delete_topic(broker: Broker, _session: Session, body: bytes) -> bytes:
    stream, topic = _foreign_topic(broker, decode_topic(body))
    broker.topology.delete_topic(stream, topic)
    broker.groups.drop(topic.key)
    return b""


def purge_topic(broker: Broker, _session: Session, body: bytes) -> bytes:
    _, topic = _foreign_topic(broker, decode_topic(body))
    _purge(broker, topic)
    return b""


def create_partitions(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted, count = decode_partition_count(body)
    _, topic = _foreign_topic(broker, wanted)
    broker.topology.add_partitions(topic, count)
    _resized(broker, topic)
    return b""


def delete_partitions(broker: Broker, _session: Session, body: bytes) -> bytes:
    wanted, count = decode_partition_count(body)
    _, topic = _foreign_topic(broker, wanted)
    broker.topology.delete_partitions(topic, count)
    _resized(broker, topic)
    return b""


def _nothing(refused: Refused) -> bytes:
    if refused.status in (Status.STREAM_NOT_FOUND, Status.TOPIC_NOT_FOUND):
        return b""
    raise refused


def _details(topic: Topic) -> bytes:
    return encode_topic(topic.record(), [partition.record() for partition in topic.partitions])


def _foreign(stream: Stream) -> Stream:
    """The stream, unless it is the server's own: its topics carry what is acknowledged to everybody."""
    if stream.name == OWN_STREAM:
        raise Refused(Status.UNAUTHORIZED)
    return stream


def _foreign_topic(broker: Broker, wanted: TopicRef) -> tuple[Stream, Topic]:
    stream = _foreign(broker.topology.stream(wanted.stream))
    return stream, stream.topic(wanted.topic)


def _purge(broker: Broker, topic: Topic) -> None:
    broker.topology.purge(topic)
    for group in broker.groups.of_topic(topic.key):
        group.forget_served()


def _resized(broker: Broker, topic: Topic) -> None:
    for group in broker.groups.of_topic(topic.key):
        group.resize(topic.numbers)


READS = {
    Code.STREAM: get_stream,
    Code.STREAMS: get_streams,
    Code.TOPIC: get_topic,
    Code.TOPICS: get_topics,
}
WRITES = {
    Code.CREATE_STREAM: create_stream,
    Code.UPDATE_STREAM: update_stream,
    Code.DELETE_STREAM: delete_stream,
    Code.PURGE_STREAM: purge_stream,
    Code.CREATE_TOPIC: create_topic,
    Code.UPDATE_TOPIC: update_topic,
    Code.DELETE_TOPIC: delete_topic,
    Code.PURGE_TOPIC: purge_topic,
    Code.CREATE_PARTITIONS: create_partitions,
    Code.DELETE_PARTITIONS: delete_partitions,
}
