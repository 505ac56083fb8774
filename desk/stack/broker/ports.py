"""The log as the managed side sees it (broker/log.py), over the broker's state."""

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from desk.stack.broker import batches
from desk.stack.broker.log import StreamInfo, TopicInfo
from desk.stack.broker.state import Broker
from desk.stack.broker.topology import Partition, Stream, Topic, now
from desk.stack.wire.codes import Refused
from desk.stack.wire.iggy import Batch, Headers, Record, encode_frames


class BrokerLog:
    """Implements desk.stack.broker.log.Log. A topic or partition that is missing is Refused."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def ensure(self, stream: str, topic: str, partitions: int, options: Headers | None = None) -> TopicInfo:
        topology = self._broker.topology
        owner = topology.names.get(stream) or topology.create_stream(stream, {})
        found = owner.names.get(topic) or topology.create_topic(owner, topic, partitions, options or {})
        return _info(owner, found)

    def append(
        self, stream: str, topic: str, partition: int, records: Sequence[tuple[bytes, Headers]]
    ) -> int:
        owner = self._broker.topology.stream(stream)
        found = owner.topic(topic)
        batch = Batch(len(records), now(), encode_frames(records), any(headers for _, headers in records))
        return self._broker.append(owner, found, found.partition(partition), batch)

    def stream_info(self, stream: str) -> StreamInfo | None:
        found = self._broker.topology.names.get(stream)
        return found and StreamInfo(found.id, found.created)

    def topic_info(self, stream: str, topic: str) -> TopicInfo | None:
        try:
            owner = self._broker.topology.stream(stream)
            return _info(owner, owner.topic(topic))
        except Refused:
            return None

    def topics(self, stream: str) -> list[str]:
        found = self._broker.topology.names.get(stream)
        return list(found.names) if found else []

    def streams(self) -> list[str]:
        return list(self._broker.topology.names)

    def head(self, stream: str, topic: str, partition: int) -> int:
        return self._partition(stream, topic, partition).next - 1

    def first(self, stream: str, topic: str, partition: int) -> int:
        return self._partition(stream, topic, partition).first

    def read(
        self, stream: str, topic: str, partition: int, start: int, count: int | None = None
    ) -> Iterator[Record]:
        """What lies there now; records appended while reading are not among them."""
        found = self._partition(stream, topic, partition)
        end = found.next
        everything = batches.records(self._broker.db, found, start)
        return islice(takewhile(lambda record: record.offset < end, everything), count)

    def _partition(self, stream: str, topic: str, partition: int) -> Partition:
        return self._broker.topology.topic(stream, topic).partition(partition)


def _info(stream: Stream, topic: Topic) -> TopicInfo:
    return TopicInfo(topic.id, topic.created, len(topic.partitions), stream.id, stream.created)
