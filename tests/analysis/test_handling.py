"""Who has which step of an exception in hand: nobody who is dead."""

import pytest

from desk.analysis.handling import Step, handlings

OPENED = {"id": "0", "at": 1.0, "kind": "exception", "agent": "dispatch", "pid": 1, "incident": "d-1",
          "state": "closure", "van": "van-1", "minute": 6.0}  # fmt: skip


def of(step: str, *told: tuple[str, str, int]) -> Step:
    """The step of the exception after these events: (kind, agent, pid)."""
    events = [
        {"id": f"{kind}-{pid}", "at": 2.0, "kind": kind, "agent": agent, "pid": pid}
        | ({} if kind in ("killed", "died", "agent_up") else {"incident": "d-1", "step": step})
        for kind, agent, pid in told
    ]
    return next(s for s in handlings([OPENED, *events])[0].steps if s.name == step)


@pytest.mark.parametrize("words", ["start", "checkpoint", "holding", "replay"])
def test_the_last_words_of_a_dead_agent_put_nothing_back_into_its_hands(words):
    told = ("start", "routing-1", 7), ("killed", "routing-1", 7), (words, "routing-1", 7)
    assert of("replan", *told).state == "lost"
    after = *told, ("agent_up", "routing-1", 8), ("replay", "routing-1", 8)
    assert of("replan", *after).state == "replayed"
    assert (
        of("replan", ("start", "routing-1", 7), ("killed", "routing-1", 7), ("step", "routing-1", 7)).state
        == "done"
    )


def test_a_message_sent_again_is_in_nobodys_hands_until_somebody_begins():
    told = (
        ("start", "customer", 7),
        ("parked", "customer", 7),
        ("killed", "customer", 7),
        ("redriven", "person", 9),
    )
    assert of("notify", *told) == Step("notify", "waiting")
    assert of("notify", *told, ("start", "customer", 8)) == Step("notify", "in hand", "customer")
