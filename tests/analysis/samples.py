"""A ticket's events as the desk writes them, with a death in the hold; no process was harmed."""

from typing import Any

WORK = "t-1:resolve-1"


def event(
    at: float, kind: str, agent: str | None, pid: int | None, step: str | None = None, **fields: Any
) -> dict[str, Any]:
    """One event record about the ticket its step names; the id is unique unless given."""
    ticket = step.partition(":")[0] if step else None
    given = {"id": f"{step}:{kind}:{agent}:{pid}:{at}", "at": 1000 + at, "kind": kind, "agent": agent}
    return {**given, "pid": pid, "ticket": ticket, "step": step, "text": "", **fields}


def killed_in_the_hold() -> list[dict[str, Any]]:
    """Opened, looked up once, held, killed by a button, replayed by the next process, approved, paid, closed.

    The resolver is quicker to write than triage, as it can be.
    """
    return [
        event(-1.0, "agent_up", "resolver", 20, text="resolver up (pid 20, LLM mock)"),
        event(0.0, "opened", None, 1, ticket="t-1", by="person", text="Order 1042 was charged twice"),
        event(0.003, "triage", "triage", 10, "t-1"),
        event(0.02, "looking_up", "resolver", 20, WORK),
        event(0.021, "handoff", "triage", 10, "t-1", state=WORK),
        event(0.022, "done", "triage", 10, "t-1"),
        event(0.03, "lookup", "resolver", 20, WORK, text="order 1042: two charges of $49.00"),
        event(0.032, "checkpoint", "resolver", 20, WORK),
        event(0.035, "holding", "resolver", 20, WORK),
        event(0.5, "triage", "triage", 10, "t-2"),
        event(2.1, "killed", "triage", 10, by="chaos"),
        event(2.2, "killed", "resolver", 20, by="button", text="killed resolver pid 20 (SIGKILL)"),
        event(2.23, "agent_up", "resolver", 21, text="resolver up (pid 21)"),
        event(2.25, "replay", "resolver", 21, WORK, text="from checkpoint, 2 turn(s) since"),
        event(2.26, "asked", "resolver", 21, WORK),
        event(2.27, "done", "resolver", 21, WORK),
        event(3.0, "killed", "resolver", 21, by="chaos", text="killed resolver pid 21 (SIGKILL)"),
        event(3.1, "agent_up", "resolver", 22),
        event(5.0, "approved", "resolver", 22, WORK, by="person"),
        event(5.01, "done", "resolver", 22, WORK),
        event(5.02, "ledger", "billing", 30, WORK, state="started"),
        event(5.03, "paid", "billing", 30, WORK),
        event(5.04, "closed", "billing", 30, WORK),
        event(5.05, "done", "billing", 30, WORK),
    ]
