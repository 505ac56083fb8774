"""A workflow's journal, the steps as they were sent, and the steps as the log counts them, as tables."""

import json
from collections import Counter

import cbor2
import pandas as pd

from desk.analysis.sheet import Sheet
from desk.control.fleet import FleetDesk
from desk.delivery.layout import INBOX
from desk.delivery.ours import request

_TOPIC = "agent.workflow_journal"
_MOST = 1_000


async def journal(fleet: FleetDesk, incident: str) -> Sheet:
    """The steps the journal has of this exception's run, oldest first, with what each answered."""
    run = (await fleet.exceptions())[incident]["run"]
    rows = []
    for message in await fleet.laser.assemble_context(run, topics=[_TOPIC], last_n=_MOST):
        entry = cbor2.loads(bytes(message.payload)).get("StepCompleted")
        if entry:
            rows.append((entry["label"], json.loads(bytes(entry["output"]))["text"]))
    return Sheet(pd.DataFrame(rows, columns=["completed step", "its answer"]).set_index("completed step"))


async def sent(fleet: FleetDesk, incident: str) -> Sheet:
    """For each step of an exception: how often a message asked an agent for it, and which agents. Raw from the inbox."""
    count = Counter[str]()
    to: dict[str, list[str]] = {}
    cursor = fleet.laser.topic(INBOX).replay()
    while messages := await cursor.poll():
        for asked in filter(None, map(request, messages)):
            if asked.incident == incident:
                count[asked.step] += 1
                if asked.agent not in to.setdefault(asked.step, []):
                    to[asked.step].append(asked.agent)
    rows = [(step, count[step], ", ".join(agents)) for step, agents in to.items()]
    return Sheet(pd.DataFrame(rows, columns=["step", "sent", "to"]).set_index("step"))


def steps(fleet: FleetDesk, incident: str) -> Sheet:
    """For each step of an exception, raw from the log: how often it was begun, how often done, and by whom."""
    begun, done = Counter[str](), Counter[str]()
    who: dict[str, list[str]] = {}
    for event in fleet.events(incident):
        step = event.get("step")
        if step and event["kind"] in ("start", "step"):
            (begun if event["kind"] == "start" else done)[step] += 1
            who.setdefault(step, [])
            if event["agent"] not in who[step]:
                who[step].append(event["agent"])
    rows = [(step, begun[step], done[step], ", ".join(agents)) for step, agents in who.items()]
    return Sheet(pd.DataFrame(rows, columns=["step", "begun", "done", "by"]).set_index("step"))
