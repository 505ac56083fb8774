"""A managed band over a real data file and a log in memory, with a clock the test sets."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from desk.stack.broker.log import StreamInfo, TopicInfo
from desk.stack.engine import Caller
from desk.stack.managed.band import Band
from desk.stack.store import Store
from desk.stack.wire import agdx, cbor
from desk.stack.wire.iggy import Headers, Record

NOW_US = 1_717_171_717_000_000
CALLER = Caller(1, 1, "127.0.0.1:50000")


class MemoryLog:
    """The broker's side of the seam, in memory: streams 0, 1, ... with topics 0, 1, ..."""

    def __init__(self, clock: "Clock") -> None:
        self.band: Band | None = None
        self._clock = clock
        self._streams: dict[str, StreamInfo] = {}
        self._topics: dict[tuple[str, str], TopicInfo] = {}
        self._records: dict[tuple[str, str, int], list[Record]] = {}
        self._firsts: dict[tuple[str, str, int], int] = {}

    def ensure(self, stream: str, topic: str, partitions: int, options: Headers | None = None) -> TopicInfo:
        made = self._streams.setdefault(stream, StreamInfo(len(self._streams), self._clock.us))
        key = (stream, topic)
        if key not in self._topics:
            number = len(self.topics(stream))
            self._topics[key] = TopicInfo(number, self._clock.us, partitions, made.id, made.created_us)
        return self._topics[key]

    def append(
        self, stream: str, topic: str, partition: int, records: Sequence[tuple[bytes, Headers]]
    ) -> int:
        kept = self._records.setdefault((stream, topic, partition), [])
        base = len(kept)
        fresh = [
            Record(base + i, self._clock.us, bytes(16), dict(headers), payload)
            for i, (payload, headers) in enumerate(records)
        ]
        kept.extend(fresh)
        if self.band is not None and self.band.wants(stream, topic):
            self.band.appended(stream, topic, partition, fresh)
        return base

    def drop(self, stream: str) -> None:
        """Delete a stream with everything in it."""
        self._streams.pop(stream)
        for kept in (self._topics, self._records):
            for key in [key for key in kept if key[0] == stream]:
                kept.pop(key)

    def stream_info(self, stream: str) -> StreamInfo | None:
        return self._streams.get(stream)

    def topic_info(self, stream: str, topic: str) -> TopicInfo | None:
        return self._topics.get((stream, topic))

    def topics(self, stream: str) -> list[str]:
        return [topic for name, topic in self._topics if name == stream]

    def streams(self) -> list[str]:
        return list(self._streams)

    def head(self, stream: str, topic: str, partition: int) -> int:
        return len(self._records.get((stream, topic, partition), ())) - 1

    def first(self, stream: str, topic: str, partition: int) -> int:
        return self._firsts.get((stream, topic, partition), 0)

    def forget(self, stream: str, topic: str, partition: int, before: int) -> None:
        """What retention does: records before an offset are gone."""
        self._firsts[stream, topic, partition] = before

    def read(
        self, stream: str, topic: str, partition: int, start: int, count: int | None = None
    ) -> Iterator[Record]:
        kept = self._records.get((stream, topic, partition), [])
        start = max(start, self.first(stream, topic, partition))
        return iter(kept[start:] if count is None else kept[start : start + count])


class Clock:
    """Epoch microseconds that stand still until moved."""

    def __init__(self) -> None:
        self.us = NOW_US

    def __call__(self) -> int:
        return self.us

    def forward(self, seconds: float) -> None:
        self.us += int(seconds * 1_000_000)


class Bench:
    """One open band: `mutate`, `read` and `plain` send a request as a client would and decode the reply."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.log = MemoryLog(self.clock)
        self._operations = itertools.count(1)
        self._open()

    def _open(self) -> None:
        self.store = Store.open(self.folder, Band.SCHEMAS)
        with self.store.transaction():
            self.band = Band(self.store, self.log, self.clock)
        self.log.band = self.band

    def close(self) -> None:
        self.store.close()

    def restart(self) -> None:
        """Close and open again over the same file; the log stays."""
        self.close()
        self._open()

    def send(self, code: int, body: bytes, caller: Caller = CALLER) -> bytes:
        """One command as the engine runs it."""
        if code in Band.MUTATIONS:
            with self.store.transaction():
                reply = self.band.handle(code, body, caller)
        else:
            reply = self.band.handle(code, body, caller)
        assert isinstance(reply, bytes)
        return reply

    def frame(self, request: dict[str, Any] | bytes, operation_id: int | None = None) -> bytes:
        """A mutation frame around a request."""
        payload = request if isinstance(request, bytes) else cbor.dumps(request)
        number = operation_id or next(self._operations)
        return cbor.dumps({"v": 1, "operation_id": number, "payload": payload})

    def mutate(self, code: int, request: dict[str, Any] | bytes, caller: Caller = CALLER) -> bytes:
        """The bare surface reply of one mutation."""
        return self._bare(self.send(code, self.frame(request), caller))

    def read(self, code: int, request: dict[str, Any] | bytes, **barriers: Any) -> bytes:
        """The bare surface reply of one barrier read."""
        payload = request if isinstance(request, bytes) else cbor.dumps(request)
        return self._bare(self.send(code, cbor.dumps({"v": 1, "read": payload, **barriers})))

    def ok(self, code: int, request: dict[str, Any] | bytes) -> Any:
        """What a mutation or barrier read answers under `Ok`."""
        answer = self.mutate if code in agdx.MUTATION_CODES else self.read
        return cbor.loads(answer(code, request))["Ok"]

    def err(self, code: int, request: dict[str, Any] | bytes) -> Any:
        """What a mutation or barrier read answers under `Err`."""
        answer = self.mutate if code in agdx.MUTATION_CODES else self.read
        return cbor.loads(answer(code, request))["Err"]

    def plain(self, code: int, request: dict[str, Any] | bytes, caller: Caller = CALLER) -> Any:
        """The decoded reply of a plain read."""
        body = request if isinstance(request, bytes) else cbor.dumps(request)
        return cbor.loads(self.send(code, body, caller))

    def publish(
        self, stream: str, topic: str, records: Sequence[tuple[bytes, Headers]], partition: int = 0
    ) -> int:
        """Append records in a transaction of their own, folds included; the base offset."""
        with self.store.transaction():
            return self.log.append(stream, topic, partition, records)

    def _bare(self, reply: bytes) -> bytes:
        frame = cbor.loads(reply)
        assert list(frame) == ["v", "frontier", "reply"], frame
        return frame["reply"]
