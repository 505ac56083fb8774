"""Notebook 15's second exercise: the shipped resolver, which answers everything and saves nothing, does not pass.

That the untouched cell fails and the hidden solution passes, tests/notebooks sees.
"""

from desk.control import start
from desk.course import check, evals, incoming, same_day

DAY = ("duplicate", "question", "not_due", "two_issues", "damaged", "no_order")


async def test_15_2_every_lookup_made_again(tmp_path):
    desks = [await start("support", name=name, data=tmp_path) for name in ("yesterday", "third")]
    try:
        yesterday, third = desks
        for scenario in (*DAY, "How long does delivery take?", "duplicate", "duplicate"):
            await yesterday.run(scenario)
        again = await same_day(third, await incoming(yesterday))
        lookups = sum(third.counts(ticket).looked_up for ticket in again)
        assert "NO" not in (await evals(third)).table.values
        assert not check("15.2", (lookups < 10, True)).ok
    finally:
        for desk in desks:
            await desk.stop()
