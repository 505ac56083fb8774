"""A ticket's events as the desk writes them, with a death in the hold; no process was harmed."""

from typing import Any


def event(
    at: float, kind: str, agent: str | None, pid: int | None, ticket: str | None = "t-1", **fields: Any
):
    """One event record; its id is unique unless given."""
    given = {"id": f"{ticket}:{kind}:{agent}:{pid}:{at}", "at": 1000 + at, "kind": kind, "agent": agent}
    return {**given, "pid": pid, "ticket": ticket, "text": "", **fields}


def killed_in_the_hold() -> list[dict[str, Any]]:
    """Opened, looked up once, held, killed by a button, replayed by the next process, approved, paid, closed."""
    return [
        event(-1.0, "agent_up", "resolver", 20, None, text="resolver up (pid 20, LLM mock)"),
        event(0.0, "opened", None, 1, by="person", text="Order 1042 was charged twice"),
        event(0.003, "triage", "triage", 10),
        event(0.005, "handoff", "triage", 10),
        event(0.02, "looking_up", "resolver", 20),
        event(0.03, "lookup", "resolver", 20, text="order 1042: two charges of $49.00"),
        event(0.032, "checkpoint", "resolver", 20),
        event(0.035, "holding", "resolver", 20),
        event(0.5, "triage", "triage", 10, "t-2"),
        event(2.2, "killed", "resolver", 20, None, by="button", text="killed resolver pid 20 (SIGKILL)"),
        event(2.23, "agent_up", "resolver", 21, None, text="resolver up (pid 21)"),
        event(2.25, "replay", "resolver", 21, text="from checkpoint, 2 turn(s) since"),
        event(2.26, "asked", "resolver", 21),
        event(5.0, "approved", "resolver", 21, by="person"),
        event(5.01, "handoff", "resolver", 21),
        event(5.02, "ledger", "billing", 30),
        event(5.03, "paid", "billing", 30),
        event(5.04, "closed", "billing", 30),
        event(5.5, "killed", "resolver", 21, None, by="chaos", text="killed resolver pid 21 (SIGKILL)"),
        event(5.6, "agent_up", "resolver", 22, None),
    ]
