"""The ticket as a LangGraph graph with its SQLite checkpointer: durability "sync", interrupt for the person.

What LangGraph leaves to its user and is therefore here: finding the tickets to resume, delivering the answer, the
hold's deadline, and an end test that survives a kill (`state.tasks`; `state.next` can be empty before the end).
"""

import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from bench.rivals.outside import HOLD, Outside
from bench.rivals.workers.inbox import Inbox

folder = Path(sys.argv[1])
outside = Outside(folder)
inbox = Inbox(folder)


class State(TypedDict, total=False):
    ticket: str
    order: dict[str, Any]
    until: float
    approved: bool
    payment: int


def look_up(state: State) -> State:
    return {"order": outside.look_up(state["ticket"]), "until": time.time() + HOLD}


def hold(state: State) -> State:
    outside.done(state["ticket"], "lookup")  # measures
    outside.holding(state["ticket"])  # measures
    time.sleep(max(0.0, state["until"] - time.time()))
    return {}


def ask(state: State) -> State:
    outside.done(state["ticket"], "hold")  # measures
    outside.ask(state["ticket"])
    return {}


def approve(state: State) -> State:
    outside.done(state["ticket"], "ask")  # measures
    return {"approved": interrupt("refund?")}


def refund(state: State) -> State:
    outside.done(state["ticket"], "approve")  # measures
    return {"payment": outside.pay(state["ticket"], f"{state['ticket']}:refund")}


def close(state: State) -> State:
    outside.done(state["ticket"], "refund")  # measures
    outside.close(state["ticket"])
    return {}


def build() -> Any:
    builder = StateGraph(State)
    builder.add_sequence([look_up, hold, ask, approve, refund, close])
    builder.add_edge(START, "look_up")
    builder.add_edge("close", END)
    checkpoints = sqlite3.connect(folder / "checkpoints.sqlite", check_same_thread=False)
    return builder.compile(checkpointer=SqliteSaver(checkpoints))


graph = build()


def work(ticket: str) -> None:
    outside.begun(ticket)  # measures
    config = {"configurable": {"thread_id": ticket}}
    state = graph.get_state(config)
    while not state.values or state.tasks:
        if not state.values:
            given: Any = {"ticket": ticket}
        elif any(task.interrupts for task in state.tasks):
            given = Command(resume=inbox.answer(ticket))
        else:
            given = None
        graph.invoke(given, config, durability="sync")
        state = graph.get_state(config)
    inbox.finished(ticket)


def main() -> None:
    outside.up()  # measures
    inbox.serve(work)


if __name__ == "__main__":
    main()
