"""Delivery problems being handled, and new orders: what kinds there are and which steps each takes. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

STEPS: Mapping[str, tuple[str, ...]] = {
    "closure": ("assess", "replan", "notify"),
    "unreachable": ("assess", "replan", "notify"),
    "removed": ("assess", "replan", "notify"),
    "missed": ("assess", "replan", "notify"),
    "order": ("assign", "notify"),
}
ROUTING, CUSTOMER, INVOICE = ("assess", "replan", "assign"), ("notify",), ("invoice-check",)
"""The skills on the cards."""


@dataclass(frozen=True)
class DeliveryException:
    """A problem with a delivery, or an order; KV keeps it under its id.

    `id` is unique over all days. `kind` is one of STEPS, or bill. `van` is empty for an order and a bill; `stop` is
    the blocked, failed or ordering stop. `attempt` counts failed attempts at that stop. `minute` is when it happened,
    `run` the workflow's id, under which it is resumed.
    """

    id: str
    kind: str
    van: str = ""
    stop: str = ""
    attempt: int = 0
    minute: float = 0.0
    run: str = ""
    state: str = "open"

    def to_json(self) -> dict[str, Any]:
        """Plain values for KV and for a step's message."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], run: str) -> "DeliveryException | None":
        """The exception an event or a position report is about; None when it is no problem."""
        kind = {"failed": "missed", "order": "order", "bill": "bill", "stopped": record.get("why")}.get(
            str(record.get("kind") or record.get("status"))
        )
        if kind is None or not record.get("incident") or "minute" not in record:
            return None
        return cls(
            id=record["incident"],
            kind=kind,
            van=record.get("van") or "",
            stop=record.get("stop") or "",
            attempt=record.get("attempt") or 0,
            minute=record["minute"],
            run=run,
        )
