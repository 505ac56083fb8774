"""The monkey's plan depends on its seed and on nothing else."""

from itertools import islice

from desk.supervisor.monkey import plan

NAMES = ["triage", "resolver", "billing"]


def kills(seed, names=NAMES, count=200):
    return list(islice(plan(seed, names, 2.0), count))


def test_same_seed_same_kills():
    assert kills(7) == kills(7) == kills(7, NAMES[::-1])
    assert kills(7) != kills(8)


def test_everybody_gets_killed_and_the_waits_are_around_every():
    planned = kills(7)
    assert {name for _, name in planned} == set(NAMES)
    assert all(1.0 <= wait <= 3.0 for wait, _ in planned)
