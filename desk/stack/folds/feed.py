"""Records the folds write beside their rows: change records that wake watchers, and capsules of rejected records.

_agdx/changes  CBOR ChangeRecord {v, index, partition_id, from_offset, to_offset, rows}
_agdx/dlq      JSON capsule of a record that a view could not take, with the reason in words
"""

import json
from typing import Any

from desk.stack.broker.log import Log
from desk.stack.wire import agdx
from desk.stack.wire.iggy import Record
from desk.stack.wire.registry import change_record


class Feed:
    """Collects during one fold, writes at its end, so that an append costs at most one batch of each kind."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._changes: list[bytes] = []
        self._rejected: list[bytes] = []

    def changed(self, index: str, partition: int, first: int, last: int, rows: int) -> None:
        """Rows landed in a view from records first..last of one partition."""
        self._changes.append(change_record(index, partition, first, last, rows))

    def rejected(
        self, index: str, stream: str, topic: str, partition: int, record: Record, reason: str, **more: Any
    ) -> None:
        """A record found no row in a view it was meant for."""
        capsule = {
            "v": 1,
            "index": index,
            "stream": stream,
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp_micros": record.timestamp,
            "reason": reason,
            **more,
        }
        self._rejected.append(json.dumps(capsule).encode())

    def flush(self, *, again: bool = False) -> None:
        """Write what was collected; `again`: from records read before, whose capsules may lie there already."""
        changes, self._changes = self._changes, []
        rejected, self._rejected = self._rejected, []
        if again and rejected:
            rejected = self._news(rejected)
        for topic, bodies in ((agdx.CHANGES_TOPIC, changes), (agdx.DLQ_TOPIC, rejected)):
            if bodies:
                self._log.ensure(agdx.OPS_STREAM, topic, 1)
                self._log.append(agdx.OPS_STREAM, topic, 0, [(body, {}) for body in bodies])

    def _news(self, rejected: list[bytes]) -> list[bytes]:
        """The capsules that are not on the topic. One tells its record's place and time, so equal is the same."""
        place = agdx.OPS_STREAM, agdx.DLQ_TOPIC
        self._log.ensure(*place, 1)
        missing = set(rejected)
        for record in self._log.read(*place, 0, self._log.first(*place, 0)):
            missing.discard(record.payload)
        return [body for body in rejected if body in missing]

    def forget(self) -> None:
        """The transaction failed: nothing collected counts."""
        self._changes, self._rejected = [], []
