"""What the support desk is made to do while its agents are killed: every scenario, and what must come of it."""

from dataclasses import dataclass

from desk.support.tickets import SCENARIOS


@dataclass(frozen=True)
class Play:
    """One ticket from opening to quiet. answer: what the person says if asked; refunds, declined: how many of each."""

    name: str
    scenario: str
    answer: str
    issues: int
    refunds: int
    declined: int = 0


def _plays() -> tuple[Play, ...]:
    plays = [
        Play(s.name, s.name, "approve", s.issues, int(s.outcome == "refunded")) for s in SCENARIOS.values()
    ]
    return (*plays, Play("declined", "duplicate", "decline", 1, 0, 1))


PLAYS = {play.name: play for play in _plays()}
