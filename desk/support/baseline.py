"""The same agents without the pattern: no checkpoint, no ledger. For comparison, one switch away.

What differs from `resolver.resolve` and `billing.refund` is only what is missing here.
"""

import json
from typing import Any

import laser_sdk as ls

from desk.support import billing, resolver
from desk.support.agent import Desk


async def resolve(desk: Desk, session: ls.Session, body: dict[str, Any]) -> None:
    """Look up, hold, decide: from the start each time."""
    record = await desk.get_order(body.get("order"))
    lookup = await session.tool("order_lookup", {"order": body.get("order")})
    await lookup.complete(json.dumps(record).encode())
    await desk.event("lookup", text=f"order_lookup {body.get('order')}: {resolver.charges(record)}")
    await desk.hold()
    await resolver.finish(desk, session, body, record)


async def refund(desk: Desk, session: ls.Session, body: dict[str, Any]) -> None:
    """Pay, and keep no note of it. Only a bank that knows the payment's key can save this."""
    await billing.pay(desk, body)
    await billing.tell_customer(desk, body)
