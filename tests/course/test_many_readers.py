"""Notebook 15's exercises: each check fails on the untouched cell and on a typical wrong answer, and passes on the solution."""

import re

import pytest

from desk.control import start
from desk.course import check, evals, incoming, same_day
from tests.notebooks.lessons import FOLDER, code_cells, is_agent, read

BOOK = read(FOLDER / "15_one_stream_many_readers.ipynb")
UNTOUCHED = [c.source.split("\n", 1)[1] for c in code_cells(BOOK) if is_agent(c)][-1]
SOLVED = next(
    found
    for cell in BOOK.cells
    for found in re.findall(r"```python\n%%agent resolver --desk third\n(.*?)```", cell.source, re.S)
)
SHIPPED = UNTOUCHED.replace('body["kind"] == "question"', "False")
DAY = [
    "duplicate",
    "question",
    "not_due",
    "two_issues",
    "damaged",
    "no_order",
    "How long does delivery take?",
]


def test_15_1_two_lookups_for_two_orders_are_right():
    assert not check("15.1", ...).ok and not check("15.1", "t-4").ok and check("15.1", "t-8").ok


async def test_15_2_fewer_lookups_and_nothing_worse(tmp_path):
    yesterday = await start("support", name="yesterday", data=tmp_path)
    try:
        for scenario in [*DAY, "duplicate", "duplicate"]:
            await yesterday.run(scenario)
        letters = await incoming(yesterday)
    finally:
        await yesterday.stop()
    verdicts = {}
    for name, code in {"untouched": UNTOUCHED, "shipped": SHIPPED, "solved": SOLVED}.items():
        third = await start("support", name=name, data=tmp_path)
        try:
            await third.use_code("resolver", code)
            lookups = sum(third.counts(ticket).looked_up for ticket in await same_day(third, letters))
            no = "NO" in (await evals(third)).table.values
            verdicts[name] = check("15.2", (lookups < 10, not no)).ok
        finally:
            await third.stop()
    assert verdicts == {"untouched": False, "shipped": False, "solved": True}


@pytest.mark.parametrize("scenario", DAY[:-1])
def test_the_day_is_made_of_scenarios(scenario):
    assert scenario in BOOK.cells[3].source
