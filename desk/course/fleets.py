"""What only the lessons about the delivery desk need: a query's answer as a table, a refusal as a sentence, a part to play."""

from collections import Counter
from collections.abc import Awaitable
from typing import Any

import laser_sdk as ls
import pandas as pd

from desk.analysis import rewind as rewinding
from desk.analysis.rewind import Rewind
from desk.analysis.sheet import Sheet
from desk.analysis.streets import places
from desk.control import DeskError
from desk.control.fleet import FleetDesk
from desk.delivery import plans
from desk.delivery.exceptions import DeliveryException
from desk.delivery.layout import MEMORY_STREAM, MEMORY_TOPIC
from desk.delivery.planning.round import Round
from desk.delivery.roads import load_legs
from desk.panels.press import sentence
from desk.runtime.saved import compare_and_swap, put_json
from desk.wording import counted


async def answer_to(query: ls.QueryRequest) -> Sheet:
    """Ask, and show every row. The rows come sorted, so that the same answer reads the same."""
    result = await query.limit(1_000).fetch()
    names = [field["name"] for field in result.fields if not field["name"].startswith("__")]
    rows = sorted(
        tuple((result.value(row, name) or {}).get("value") for name in names) for row in result.rows
    )
    return Sheet(pd.DataFrame(rows, columns=names).set_index(names[0]))


async def refused(work: Awaitable[Any]) -> str:
    """Try something the desk or the stack should refuse; returns its sentence, or says that it was not refused."""
    try:
        await work
    except (DeskError, ls.LaserError) as error:
        if getattr(error, "version_conflict", False):
            return "Somebody has written there before: nothing was changed."
        return sentence(error)
    return "It was not refused."


async def remember_again(fleet: FleetDesk, stop: str) -> str:
    """Play the customer agent whose step is delivered again: its own call, once more for each note of this customer."""
    memory, customer = (
        fleet.laser.memory_on_topic(MEMORY_TOPIC, stream=MEMORY_STREAM),
        places()[stop].customer,
    )
    notes = await memory.recall(user=customer, limit=100)
    for note in notes:
        await memory.remember(note.text(), user=customer, agent="customer", dedup=True)
    return f"{counted(len(notes), 'note')} remembered again"


async def rewind(fleet: FleetDesk) -> Rewind:
    """The day so far from two fresh cursors on its log."""
    return await rewinding.rewind(fleet.laser, fleet.day)


async def squeeze_in(fleet: FleetDesk, stop: str, van: str) -> str:
    """Play the other copy of routing: put one more drop into a van's round, with routing's own compare-and-swap."""
    order = DeliveryException(id=f"{fleet.day}-{stop}", kind="order", stop=stop)
    metres = load_legs().metres

    def swap(value: dict[str, Any]) -> dict[str, Any] | None:
        taken = plans.taken(Round.from_json(value), order, (), metres)
        return None if taken is None else taken.to_json()

    await compare_and_swap(fleet.laser.kv("rounds"), van, swap)
    await put_json(fleet.laser.kv("stops"), stop, {"state": "ordered", "van": van})
    return f"{places()[stop].name} in {places()[stop].suburb} is in {van}'s round"


async def close_roads(fleet: FleetDesk, number: int) -> str:
    """Close a road in front of a van that is driving, wait until that is dealt with, and so on, so many times."""
    for _ in range(number):
        closed = Counter(e["van"] for e in fleet.events() if e["kind"] == "stopped")
        driving = [
            v
            for v, r in (await fleet.rounds()).items()
            if len(r.open_drops) > 1 and not (r.serving or r.parked)
        ]
        if not driving:
            return "No van is on its way to a customer now: try again in a moment."
        van = min(driving, key=lambda v: (closed[v], v))
        await fleet.until("closed", incident=await fleet.incident("closure", van), timeout=60)
    return f"{counted(number, 'road')} closed and dealt with"
