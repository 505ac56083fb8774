"""How long a binding's rows live, as the binding says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from desk.stack.wire.registry import MAX_ROWS, MIRROR, TTL, UNTIL_DELETED


@dataclass(frozen=True, slots=True)
class Retention:
    """mirror_log: as long as the record is on the log (what a binding without a retention means).
    keep: for ever. keep_until_source_deleted: until the topic is deleted.
    time_to_live: `ttl_us` microseconds after the record. max_rows: the newest `rows` of the view.
    """

    kind: str = MIRROR
    ttl_us: int = 0
    rows: int = 0

    @property
    def ends_with_topic(self) -> bool:
        return self.kind in (MIRROR, UNTIL_DELETED)


def retention(wire: Mapping[str, Any] | None) -> Retention:
    """From a checked binding."""
    if wire is None:
        return Retention()
    kind = wire["kind"]
    return Retention(kind, wire["ttl_micros"] if kind == TTL else 0, wire["rows"] if kind == MAX_ROWS else 0)
