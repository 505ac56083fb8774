"""An agent whose way to the stack leads through a relay: the agent's own module over another connection.

Switches: `relay`, the connection string to use; `real`, the dotted path of the agent's module.
"""

import importlib

from desk.runtime.connect import connect
from desk.runtime.events import Events
from desk.runtime.process import Process


async def main(me: Process) -> None:
    me.laser = await connect(me.switches["relay"], me.spec.stream)
    me.events = Events(me.laser, me.spec.events_topic, me.name)
    await importlib.import_module(me.switches["real"]).main(me)
