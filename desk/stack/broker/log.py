"""What the managed side sees of the log. Every call happens inside the engine's current transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from desk.stack.wire.iggy import Headers, Record


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream's number and when it was made (microseconds): its generation."""

    id: int
    created_us: int


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic's number, generation (`created_us`), partition count, and the same of its stream."""

    id: int
    created_us: int
    partitions: int
    stream_id: int
    stream_created_us: int


class Log(Protocol):
    """Streams and topics by name, records by partition and offset."""

    def ensure(self, stream: str, topic: str, partitions: int, options: Headers | None = None) -> TopicInfo:
        """The topic, made (with its stream) when it is not there; an existing one is left as it is."""

    def append(
        self, stream: str, topic: str, partition: int, records: Sequence[tuple[bytes, Headers]]
    ) -> int:
        """Append (payload, headers) pairs as one batch; the base offset. Folds run, except for "_agdx"."""

    def stream_info(self, stream: str) -> StreamInfo | None: ...

    def topic_info(self, stream: str, topic: str) -> TopicInfo | None: ...

    def topics(self, stream: str) -> list[str]: ...

    def streams(self) -> list[str]: ...

    def head(self, stream: str, topic: str, partition: int) -> int:
        """The last offset, -1 when empty."""

    def first(self, stream: str, topic: str, partition: int) -> int:
        """The earliest offset still kept (equals head + 1 when nothing is)."""

    def read(
        self, stream: str, topic: str, partition: int, start: int, count: int | None = None
    ) -> Iterator[Record]:
        """Records from offset `start` on, at most `count`."""
