"""When is a ticket closed? When each of its issues has ended; whoever ends the last one closes it. Pure.

A case is {"issues": {handoff: outcome or None}, "closed_by": handoff or None}.
"""

from collections.abc import Iterable
from typing import Any

Case = dict[str, Any]


def opened(handoffs: Iterable[str]) -> Case:
    """A case with these issues, none of them ended."""
    return {"issues": dict.fromkeys(handoffs), "closed_by": None}


def ended(case: Case, handoff: str, outcome: str) -> Case | None:
    """The case with this issue ended, or None if it had ended before (the first outcome stands)."""
    if case["issues"].get(handoff) is not None:
        return None
    issues = {**case["issues"], handoff: outcome}
    last = all(issues.values())
    return {"issues": issues, "closed_by": handoff if last else case["closed_by"]}
