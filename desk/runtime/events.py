"""Write what a process did to the desk's events topic, which the timeline is a fold of."""

import os
import time
import uuid
from typing import Any

import laser_sdk as ls


def derived_id(key: str) -> str:
    """The event id of `key`: the same in every process and every run."""
    return uuid.uuid5(uuid.NAMESPACE_OID, key).hex


class Events:
    """One writer to one events topic. An awaited event is on the log, in the order of its writer."""

    def __init__(self, laser: ls.Laser, topic: str, agent: str) -> None:
        self._topic = laser.topic(topic)
        self._agent = agent

    async def emit(
        self, kind: str, *, agent: str | None = None, key: str | None = None, **fields: Any
    ) -> None:
        """Append {"id", "at", "kind", "agent", "pid", …fields}; `at` is epoch seconds.

        Give `key` to what a redelivered message may write again: its id is then derived, and a reader can tell
        the repeat from a second event. `agent` is whom the event is about, the writer by default; fields
        override what is put in by itself, and fields that are None are left out.
        """
        record = {
            "id": derived_id(key) if key is not None else uuid.uuid4().hex,
            "at": time.time(),
            "kind": kind,
            "agent": agent or self._agent,
            "pid": os.getpid(),
            **fields,
        }
        await self._topic.publish().json({k: v for k, v in record.items() if v is not None}).send()
