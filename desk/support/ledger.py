"""The refund ledger in key-value state, keyed by the handoff's idempotency key: started, then done."""

from collections.abc import Mapping
from typing import Any

import laser_sdk as ls

from desk.runtime.saved import get_json, put_json


async def start(ledger: ls.Kv, key: str, refund: Mapping[str, Any]) -> str:
    """Claim a refund: "started" for a new one, "found started" or "found done" for one that was there.

    A process that repeats its own claim after a death finds it: only what is there tells a first run from a second.
    """
    try:
        await ledger.set(key).json({**refund, "state": "started"}).expect_absent().commit()
        return "started"
    except ls.KvError as error:
        if not error.version_conflict:
            raise
    return f"found {(await get_json(ledger, key))['state']}"


async def done(ledger: ls.Kv, key: str, refund: Mapping[str, Any]) -> None:
    """The bank has paid."""
    await put_json(ledger, key, {**refund, "state": "done"})
