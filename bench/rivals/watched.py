"""An agent of the desk, unchanged, whose events are also written into the book outside: the module of a desk process."""

import asyncio
import importlib
from collections.abc import Mapping
from typing import Any

from bench.rivals.outside import Outside
from desk.runtime.process import Process

RAW: Mapping[str, str] = {"looking_up": "lookup", "holding": "hold", "asked": "asked", "replay": "begun"}
"""Kinds of what happens whether or not it gets recorded: noted before the event is written."""
RECORDED: Mapping[str, str] = {
    "agent_up": "up",
    "lookup": "done:lookup",
    "policy": "done:hold",
    "approved": "done:approve",
    "ledger:done": "done:refund",
    "closed": "closed",
}
"""Kinds that tell of something the desk has: noted when the event is on the log, so never too early."""


async def main(me: Process) -> None:
    outside = Outside(me.folder)
    write = me.event

    async def event(kind: str, **fields: Any) -> None:
        ticket = fields.get("ticket") or ""
        place = f"{kind}:{fields['state']}" if fields.get("state") else kind
        what = RAW.get(kind) or (place if kind == "ledger" and place not in RECORDED else None)
        if what:
            outside.note(ticket, what)
        await write(kind, **fields)
        if kind == "asked":
            outside.done(ticket, "ask")
        elif kind == "paid":
            await asyncio.to_thread(outside.paid, ticket)
        elif what := RECORDED.get(place) or RECORDED.get(kind):
            outside.note(ticket, what)

    me.event = event  # type: ignore[method-assign]
    await importlib.import_module(f"desk.support.{me.name}").main(me)
