"""How long a binding's rows live, as the binding says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MIRROR, KEEP, UNTIL_DELETED, TTL, MAX_ROWS = (
    "mirror_log",
    "keep",
    "keep_until_source_deleted",
    "time_to_live",
    "max_rows",
)
KINDS = (MIRROR, KEEP, UNTIL_DELETED, TTL, MAX_ROWS)


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
    """From a binding; ValueError for one that cannot be kept."""
    if wire is None:
        return Retention()
    kind = wire.get("kind")
    if kind not in KINDS:
        raise ValueError(f"the retention {kind!r} is not served")
    ttl, rows = wire.get("ttl_micros", 0), wire.get("rows", 0)
    if kind == TTL and not (type(ttl) is int and 0 < ttl < 1 << 62):
        raise ValueError("time_to_live needs a ttl_micros above 0")
    if kind == MAX_ROWS and not (type(rows) is int and 0 < rows < 1 << 62):
        raise ValueError("max_rows needs rows above 0")
    return Retention(kind, ttl if kind == TTL else 0, rows if kind == MAX_ROWS else 0)
