"""served: what the stack said it can do when this client connected."""

from typing import Any

import pandas as pd

from desk.analysis.sheet import Sheet


async def served(desk: Any) -> Sheet:
    """The stack's answer to the client's hello, surface by surface."""
    can = await desk.laser.capabilities()
    surfaces = {
        "log: streams, topics, groups": True,
        "key-value state": can.kv.available,
        "set only if unchanged": can.kv.cas,
        "leases": can.kv.fenced_leases,
        "queries over topics": can.query.available,
        "forks": can.forks,
        "knowledge graph": can.graph,
        "index of sessions": can.sessions,
        "change feed": can.watch,
    }
    rows = [(surface, "yes" if here else "not here") for surface, here in surfaces.items()]
    return Sheet(pd.DataFrame(rows, columns=["surface", "served"]).set_index("surface"))
