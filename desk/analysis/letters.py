"""Messages to customers: those told, those parked, and what a customer is remembered for."""

import pandas as pd

from desk.analysis.sheet import Sheet
from desk.analysis.streets import places
from desk.control.fleet import FleetDesk
from desk.delivery.layout import MEMORY_STREAM, MEMORY_TOPIC
from desk.runtime.records import record

_REASONS = {1: "retries ran out", 2: "rejected", 3: "could not be read", 4: "too late"}


async def capsules(fleet: FleetDesk) -> Sheet:
    """The dead letters on the desk: whose message, how often it was tried, and why it was given up."""
    rows = []
    for incident, letter in sorted((await fleet.parked()).items()):
        capsule = letter["capsule"]
        reason = _REASONS.get(capsule.get("reason"), str(capsule.get("reason")))
        rows.append((incident, letter["step"], capsule.get("attempts"), reason, capsule.get("detail")))
    columns = ["exception", "step", "attempts", "given up because", "the last error"]
    return Sheet(pd.DataFrame(rows, columns=columns).set_index("exception"))


def told(fleet: FleetDesk, incident: str) -> Sheet:
    """Every message about an exception that went out, raw from the log: who, how often, and what it said."""
    found: dict[str, list[str]] = {}
    for event in fleet.events(incident):
        if event["kind"] == "told":
            found.setdefault(event["stop"], []).append(event["text"])
    rows = [(places()[stop].name, len(texts), texts[-1]) for stop, texts in found.items()]
    return Sheet(pd.DataFrame(rows, columns=["customer", "told", "what"]).set_index("customer"))


async def remembered(fleet: FleetDesk, stop: str) -> Sheet:
    """What the desk remembers of the customer at this stop, oldest first, from every day there was."""
    memory = fleet.laser.memory_on_topic(MEMORY_TOPIC, stream=MEMORY_STREAM)
    items = await memory.recall(user=places()[stop].customer, limit=100)
    rows = [record(item) or {} for item in reversed(items)]
    known = [(r["incident"], r["what"]) for r in rows if {"incident", "what"} <= r.keys()]
    return Sheet(pd.DataFrame(known, columns=["incident", "what"]).set_index("incident"))
