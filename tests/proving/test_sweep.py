"""A few points of the sweep for real, and a judge that is not blind."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from desk.proving import sweep
from desk.proving.frames import Write
from desk.proving.plays import PLAYS
from desk.proving.relay import AFTER, BEFORE, Point
from desk.proving.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")
DUPLICATE = PLAYS["duplicate"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


async def test_undisturbed_every_write_of_the_resolver_is_seen(stage: Stage) -> None:
    row = await stage.perform(DUPLICATE, "resolver")
    assert row.violations == () and not row.killed
    written = [str(write) for write, _ in row.seen]
    assert "set checkpoints t-1:resolve-1" in written and "cas decisions t-1:resolve-1" in written
    assert "acknowledge agent.sessions" in written and "send desk.events" in written


@pytest.mark.parametrize(
    ("agent", "write", "side"),
    [
        ("triage", Write("cas", "cases t-1"), AFTER),
        ("resolver", Write("set", "checkpoints t-1:resolve-1"), BEFORE),
        ("resolver", Write("set", "checkpoints t-1:resolve-1"), AFTER),
        ("billing", Write("cas", "ledger t-1:resolve-1:refund"), AFTER),
        ("billing", Write("set", "ledger t-1:resolve-1:refund"), BEFORE),
        ("billing", Write("set", "ledger t-1:resolve-1:refund"), AFTER),
    ],
)
async def test_killed_there_nothing_is_broken(stage: Stage, agent: str, write: Write, side: str) -> None:
    row = await stage.perform(DUPLICATE, agent, Point(write, 1, side))
    assert row.killed and row.violations == ()


async def test_the_judge_sees_a_second_payment(stage: Stage) -> None:
    point = Point(Write("set", "ledger t-1:resolve-1:refund"), 1, BEFORE)
    row = await stage.perform(DUPLICATE, "billing", point, "forgetful bank")
    assert row.killed and row.raw["paid"] == 2
    assert "paid 2 times, 1 due" in row.violations


async def test_the_judge_sees_a_hold_and_a_lookup_repeated(stage: Stage) -> None:
    point = Point(Write("cas", "claims 1042:duplicate"), 1, BEFORE)
    row = await stage.perform(DUPLICATE, "resolver", point, "baseline")
    assert row.killed and row.raw["lookups"] == row.raw["holds"] == 2
    assert {"held 2 times", "a lookup after a recorded result"} <= set(row.violations)


async def test_a_sample_of_all_writes_of_the_refund_breaks_nothing(stage: Stage) -> None:
    cases, undisturbed = await sweep.points(stage, [DUPLICATE])
    assert {case.agent for case in cases} == {"triage", "resolver", "billing"} and len(cases) > 100
    assert undisturbed["duplicate"]["paid"] == 1
    rows = await sweep.spread(sweep.sample(cases, 12, seed=7), lambda case: sweep.perform(stage, case))
    assert [(row.killed, row.violations) for row in rows] == [(True, ())] * 12
