"""The exam for any agent: the pattern passes it, what is missing in it is named."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from desk.control import DeskError, start
from desk.control.support import SupportDesk
from desk.proving.exam import Outcome, differences, examine, points
from desk.proving.frames import Write
from desk.proving.relay import AFTER, BEFORE, Point

CLERK = """
import json
from desk.support.agent import serve
from desk.support.steps import so_far

async def voucher(desk, body, done):
    desk.bank.pay(f"{desk.ticket}:voucher", 500, body["customer"], "a thank you")
    return 500

STEPS = {"voucher": voucher}

async def work(desk, session, body):
    done = await so_far(desk, session)
    for name, step in STEPS.items():
        if name not in done:
            call = await session.tool(name, {})
            done[name] = await step(desk, body, done)
            await call.complete(json.dumps(done[name]).encode())
    await desk.event("closed", text="closed")

async def main(me):
    await serve(me, {"thank": work})
"""
CALM = Outcome(1, 0, 1, 1, {"voucher": 1}, {"voucher": ("500",)})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def support(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SupportDesk]:
    support = await start("support", name="exam", data=tmp_path_factory.mktemp("exam"))
    yield support
    await support.stop()


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        (Outcome(1, 0, 1, 2, {"voucher": 2}, {"voucher": ("500",)}), []),
        (
            Outcome(1, 0, 1, 2, {"voucher": 2}, {"voucher": ("500", "500")}),
            ["voucher was done again although its result was recorded"],
        ),
        (Outcome(1, 0, 2, 2, {"voucher": 2}, {"voucher": ("500",)}), ["paid 2 times instead of 1"]),
        (
            Outcome(2, 0, 1, 1, {"voucher": 1}, {"voucher": ("300",)}),
            ["closed 2 times", "voucher has another result"],
        ),
        (
            Outcome(0, 1, 1, 1, {}, {}),
            ["the job was given up", "closed 0 times", "voucher has another result"],
        ),
    ],
)
def test_what_a_kill_has_changed(found: Outcome, faults: list[str]) -> None:
    assert differences(CALM, found) == faults


def test_both_sides_of_every_write_and_of_the_acknowledgement() -> None:
    write, last = Write("send", "desk.events"), Write("acknowledge", "agent.sessions")
    assert points([(write, 2)]) == [
        Point(w, n, side) for w, n in ((write, 2), (last, 1)) for side in (BEFORE, AFTER)
    ]


@pytest.mark.asyncio(loop_scope="module")
class TestOnADesk:
    async def test_the_pattern_passes(self, support: SupportDesk) -> None:
        await support.use_code("clerk", CLERK)
        exam = await examine(support, "clerk", "thank", {"customer": "c-17"})
        assert exam.passed and not exam.faults
        assert len(exam.attempts) == exam.planned == 12
        assert {a.outcome.paid for a in exam.attempts} == {1}
        assert max(a.outcome.bank_asked for a in exam.attempts) == 2

    @pytest.mark.parametrize(
        ("missing", "instead", "fault"),
        [
            ("await so_far(desk, session)", "{}", "voucher was done again although its result was recorded"),
            ("{desk.ticket}:voucher", "{desk.ticket}:{desk.me.pid}", "paid 2 times instead of 1"),
        ],
    )
    async def test_what_is_missing_is_named(
        self, support: SupportDesk, missing: str, instead: str, fault: str
    ) -> None:
        await support.use_code("clerk", CLERK.replace(missing, instead))
        exam = await examine(support, "clerk", "thank", {"customer": "c-17"})
        assert not exam.passed and fault in exam.faults

    async def test_a_job_that_never_ends_is_said(self, support: SupportDesk) -> None:
        await support.use_code("clerk", CLERK.replace('"closed", text', '"over", text'))
        with pytest.raises(DeskError, match="does not finish the job undisturbed"):
            await examine(support, "clerk", "thank", {"customer": "c-17"}, patience=1)
