"""The exercises' right answers, found out on a running desk as a learner would."""

import pytest

from desk.analysis.timeline import Timeline
from desk.control import start
from desk.course.exercises import EXERCISES

PLACES = ("paid", "reply")


@pytest.fixture
async def support(tmp_path):
    desk = await start("support", name="lesson", data=tmp_path, policy_pause=0.2)
    yield desk
    await desk.stop()


async def test_0_1_a_cursor_goes_on_and_a_new_one_starts_over(support):
    hello = support.laser.topic("hello")
    cursor = hello.replay()
    for word in ("first", "second"):
        await hello.publish().json({"says": word}).send()
    await cursor.poll()
    await hello.publish().json({"says": "third"}).send()
    assert (len(await cursor.poll()), len(await hello.replay().poll())) == EXERCISES["0.1"].right


async def test_1_1_above_the_limit(support):
    ticket = await support.run("above_limit")
    policy = next(e for e in Timeline.of(support.events(), ticket).events if e["kind"] == "policy")
    assert policy["state"] == EXERCISES["1.1"].right


async def test_1_2_declined_then_approved(support):
    ticket = await support.open_ticket("duplicate")
    await support.until(ticket, "asked")
    await support.decline(ticket)
    await support.approve(ticket)
    await support.until(ticket, "closed")
    await support.until(ticket, "late_answer")
    assert bool(support.counts(ticket).paid) is EXERCISES["1.2"].right


async def test_2_killed_before_anything_was_recorded_and_between_bookmark_and_result(support):
    early = await support.run("duplicate", kill="resolver", at="looking_up")
    assert support.counts(early).looked_up == EXERCISES["2.1"].right
    between = await support.run("duplicate", kill="resolver", at="checkpoint")
    assert support.counts(between).held == EXERCISES["2.2"].right


async def test_3_payments_too_many_and_the_bank_of_a_closed_ticket(support):
    late = await support.run("duplicate", kill="billing", at="closed")
    assert support.counts(late).bank_asked == EXERCISES["3.2"].right
    await support.use_baseline("billing")
    await support.use_bank("forgetful")
    paid = [support.counts(await support.run("duplicate", kill="billing", at=place)).paid for place in PLACES]
    assert sum(paid) - len(PLACES) == EXERCISES["3.1"].right


async def test_4_1_hit_again_and_again(support):
    await support.chaos(True, every=0.2, seed=7)
    ticket = await support.run("duplicate")
    await support.chaos(False)
    assert support.counts(ticket).asked == EXERCISES["4.1"].right
