"""Each check says yes, no, or nothing; on a real desk the shipped agents pass them all and a false answer is found."""

import pytest

from desk.analysis.evals import (
    Record,
    answers_what_was_asked,
    cites_what_exists,
    ended_as_due,
    evals,
    invents_nothing,
)
from desk.analysis.incoming import Letter, incoming
from desk.control import start
from desk.course.versions import same_day, told_otherwise, versions


def record(reply: str = "", *events: dict, text: str = "Order 1042?", due: str = "", paid: int = 0) -> Record:
    letter = Letter("t-1", text, "c-17", "approve", due)
    return Record(letter, events, {"r": reply} if reply else {}, paid)


@pytest.mark.parametrize(
    ("due", "paid", "state", "says"),
    [
        ("refunded", 1, "due", True),
        ("refunded", 0, "due", False),
        ("refused", 0, "refused", True),
        ("refused", 1, "refused", False),
        ("manager", 0, "refused", False),
        ("", 0, "refused", None),
    ],
)
def test_ended_as_due(due, paid, state, says):
    assert ended_as_due(record("", {"kind": "policy", "state": state}, due=due, paid=paid)) is says


def test_an_amount_or_an_order_that_is_nowhere_on_the_log_is_invented():
    known = {"kind": "asked", "text": "refund of $49.00 due"}
    assert invents_nothing(record("$49.00 for order 1042", known)) is True
    assert invents_nothing(record("$94.00 for order 1042", known)) is False
    assert invents_nothing(record("$49.00 for order 1024", known)) is False


ANSWER = {"kind": "answer", "text": "from kb-delivery"}
ASKED = {"kind": "triage", "text": "refund request, order 1043; question, order 1051"}


def test_citations_lead_somewhere():
    assert cites_what_exists(record("Six days. [kb-delivery]", ANSWER)) is True
    assert cites_what_exists(record("Six days. [kb-dreams]", ANSWER)) is False
    assert cites_what_exists(record("Six days.", ANSWER)) is False
    assert cites_what_exists(record("No refund.")) is None


def test_the_order_that_was_asked_about_and_not_the_one_to_refund():
    assert answers_what_was_asked(record("On its way. [order 1051]", ASKED)) is True
    assert answers_what_was_asked(record("On its way. [order 1043]", ASKED)) is False
    assert answers_what_was_asked(record("No refund.")) is None


NO_LOOKUP = """
from desk.support import resolver
from desk.support.agent import serve

async def resolve(desk, session, body):
    if body["kind"] == "question":
        await resolver.answer_question(desk, body, None)
    else:
        await resolver.resolve(desk, session, body)

async def main(me):
    await serve(me, {"resolve": resolve, "decide": resolver.decide})
"""


async def test_the_same_day_on_another_desk_with_another_version(tmp_path):
    before = await start("support", name="before", data=tmp_path)
    after = await start("support", name="after", data=tmp_path)
    try:
        for scenario in ("two_issues", "not_due"):
            await before.run(scenario)
        declined = await before.run("duplicate", answer="decline")
        letters = await incoming(before)
        assert [(one.due, one.answer) for one in letters] == [
            ("refunded", "approve"),
            ("refused", "approve"),
            ("refunded", "decline"),
        ]
        assert "NO" not in (await evals(before)).table.to_numpy()

        await after.use_code("resolver", NO_LOOKUP)
        again = await same_day(after, letters)
        assert after.counts(again[-1]).paid == before.counts(declined).paid == 0
        assert list((await evals(after)).table["answers what was asked"]) == ["NO", "", ""]
        changed = (await told_otherwise(before, after)).table
        assert list(changed.index) == ["t-1"] and "[order record]" in changed.loc["t-1", "only after"]
        table = (await versions({"before": before, "after": after}, {"looking_up": 5})).table
        assert list(table["cents"]) == [20, 15]
        assert list(table["answers what was asked"]) == ["1 of 1", "0 of 1"]
    finally:
        await before.stop()
        await after.stop()
