"""A few points of the sweep for real, and judges that are not blind."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from desk.control.errors import DeskError
from desk.proving import days, sweep, tickets
from desk.proving.cases import ANSWERED, HUNG, ONCE, STOPPED, TWICE, Case, Done, Kill, Seen, row
from desk.proving.frames import Write
from desk.proving.plays import DAYS, DELIVERY, PLAYS, SUPPORT, Day, Play
from desk.proving.relay import AFTER, ANY, BEFORE, Point, Relay
from desk.proving.stage import Stage, ended

pytestmark = pytest.mark.asyncio(loop_scope="module")
DUPLICATE = PLAYS["duplicate"]
CHECKPOINT = Write("set", "checkpoints t-1:resolve-1")
LEDGER = Write("set", "ledger t-1:resolve-1:refund")


def case(agent: str, write: Write, side: str, way: str = ONCE, play: str = "duplicate") -> Case:
    return Case((PLAYS | DAYS)[play], (Kill(agent, Point(write, 1, side)),), way)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


async def test_undisturbed_every_write_is_seen(stage: Stage) -> None:
    done = await tickets.perform(stage, Case(DUPLICATE))
    assert done.row.violations == () and not done.row.hit
    written = [str(write) for write, _ in done.seen["resolver"].writes]
    assert "set checkpoints t-1:resolve-1" in written and "cas decisions t-1:resolve-1" in written
    assert "acknowledge agent.sessions" in written and "send desk.events" in written
    assert set(done.seen) == {"triage", "resolver", "billing"}


@pytest.mark.parametrize(
    ("agent", "write", "side"),
    [
        ("resolver", CHECKPOINT, BEFORE),
        ("resolver", CHECKPOINT, AFTER),
        ("billing", Write("cas", "ledger t-1:resolve-1:refund"), AFTER),
        ("billing", LEDGER, BEFORE),
        ("billing", LEDGER, AFTER),
    ],
)
async def test_killed_there_nothing_is_broken(stage: Stage, agent: str, write: Write, side: str) -> None:
    row = await sweep.perform(stage, case(agent, write, side))
    assert row.reached and row.violations == ()


async def test_killed_again_while_it_recovers_nothing_is_broken(stage: Stage) -> None:
    kills = (Kill("resolver", Point(CHECKPOINT, 1, AFTER)), Kill("resolver", Point(ANY, 4, BEFORE)))
    row = await sweep.perform(stage, Case(DUPLICATE, kills, TWICE))
    assert row.hit == 2 and row.violations == ()


async def test_the_person_answers_while_no_resolver_is_there(stage: Stage) -> None:
    point = Point(Write("send", "desk.events"), 8, AFTER)
    row = await sweep.perform(stage, Case(DUPLICATE, (Kill("resolver", point),), ANSWERED))
    assert row.reached and row.violations == ()


@pytest.mark.parametrize(("agent", "write"), [("resolver", CHECKPOINT), ("billing", LEDGER)])
async def test_stopped_replaced_and_continued_it_repeats_nothing(
    stage: Stage, agent: str, write: Write
) -> None:
    row = await sweep.perform(stage, case(agent, write, BEFORE, STOPPED))
    assert row.reached and row.violations == () and row.raw["paid"] == 1


@pytest.mark.parametrize(("agent", "side"), [("resolver", BEFORE), ("billing", AFTER)])
async def test_stopped_with_its_connection_open_its_late_write_changes_nothing(
    stage: Stage, agent: str, side: str
) -> None:
    point = Point({"resolver": CHECKPOINT, "billing": LEDGER}[agent], 1, side, kept=True)
    row = await sweep.perform(stage, Case(DUPLICATE, (Kill(agent, point),), STOPPED))
    assert row.reached and row.violations == () and row.raw["paid"] == 1
    assert row.frames == (f"{agent} {side} {point.write} #1",)


@pytest.mark.parametrize(
    ("agent", "write", "side", "play", "way"),
    [
        ("simulator", Write("set", "stops s-33"), BEFORE, "new order", ONCE),
        ("dispatch", Write("cas", "exceptions day-1"), AFTER, "nobody home", ONCE),
        ("invoice", Write("cas", "decisions day-bill"), AFTER, "overbilled", ONCE),
        ("customer", Write("cas", "results day-1:notify"), BEFORE, "nobody home", STOPPED),
        ("simulator", Write("send", "fleet.events"), AFTER, "new order", HUNG),
    ],
)
async def test_of_a_delivery_day_nothing_is_broken(
    stage: Stage, agent: str, write: Write, side: str, play: str, way: str
) -> None:
    row = await sweep.perform(stage, case(agent, write, side, way, play))
    assert row.reached and row.violations == ()


async def test_the_judge_sees_a_second_payment(stage: Stage) -> None:
    row = await sweep.perform(stage, case("billing", LEDGER, BEFORE, "forgetful bank"))
    assert row.reached and row.raw["paid"] == 2
    assert "paid 2 times, 1 due" in row.violations


async def test_the_judge_sees_a_hold_and_a_lookup_repeated(stage: Stage) -> None:
    row = await sweep.perform(
        stage, case("resolver", Write("cas", "claims 1042:duplicate"), BEFORE, "baseline")
    )
    assert row.reached and row.raw["lookups"] == row.raw["holds"] == 2
    assert {"held 2 times", "a lookup after a recorded result"} <= set(row.violations)


async def test_the_judge_sees_that_it_was_another_day(stage: Stage) -> None:
    found = await sweep.points(stage, DELIVERY, [DAYS["new order"]])
    expected = stage.expected["new order"]
    [told] = [event for event in expected["events"] if event.startswith("told ")]
    assert '"stop": "s-33"' in told and "thank you for your order" in told
    assert found.undisturbed["new order"]["told"] == 1
    up = {case.kills[0].point.write for case in found.working if case.agents == ("dispatch",)}
    assert Write("send", "desk.inbox") in up and Write("send", "fleet.events") in up
    early = set(found.cases) - set(found.working)
    assert "dispatch before send fleet.events #1" in {case.places for case in early}
    others = [event for event in expected["events"] if event != told]
    stage.expected["new order"] = {**expected, "events": others}
    done = await days.perform(stage, Case(DAYS["new order"]))
    assert done.row.violations == (f"on the log too: {told[:300]}",)


@pytest.mark.parametrize("play", [PLAYS["two refunds"], DAYS["two vans stop"]])
async def test_what_is_wrong_without_a_kill_is_never_tried_again(
    stage: Stage, play: Play | Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    async def wrong_once(stage: Stage, case: Case) -> Done:
        runs.append(case)
        violations = ("paid 2 times, 1 due",) if len(runs) == 1 else ()
        return Done(row(case, 0, violations, {}, ()), {agent: Seen(()) for agent in case.agents})

    monkeypatch.setitem(sweep._PERFORM, play.desk, wrong_once)
    monkeypatch.setitem(sweep._RECORDED, play.desk, 1)
    with pytest.raises(RuntimeError, match=f"{play.name} without a kill: paid 2 times"):
        try:
            await sweep.points(stage, play.desk, [play])
        except* RuntimeError as errors:
            raise errors.exceptions[0] from None


@pytest.mark.parametrize("always", [True, False])
async def test_what_is_done_twice_each_time_without_a_kill_ends_the_sweep(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], always: bool
) -> None:
    runs = []

    async def twice(stage: Stage, case: Case) -> Done:
        runs.append(case)
        said = ("told 10 times for 5",) if always or len(runs) == 1 else ()
        return Done(row(case, 0, (), {}, ()), {agent: Seen(()) for agent in case.agents}, repeated=said)

    monkeypatch.setitem(sweep._PERFORM, DELIVERY, twice)
    if always:
        with pytest.raises(
            RuntimeError, match="closure without a kill, each of 3 times: told 10 times for 5"
        ):
            await sweep._undisturbed(stage, DAYS["closure"], (), "")
    else:
        assert (await sweep._undisturbed(stage, DAYS["closure"], (), "")).repeated == ()
    assert len(runs) == (3 if always else 2)
    said = capsys.readouterr().out.splitlines()  # also what is thrown away is told
    assert said == ["closure without a kill: told 10 times for 5"] * (3 if always else 1)


async def test_whoever_hangs_is_ended_by_the_watchdog_or_it_is_a_violation() -> None:
    class Log:
        rows = ({"kind": "killed", "by": "watchdog", "pid": 7}, {"kind": "killed", "by": "code", "pid": 8})

        async def wait(
            self, wanted: Callable[[Any], bool], timeout: float, missing: Callable[[], str]
        ) -> None:
            if not any(map(wanted, self.rows)):
                raise DeskError(missing())

    relay = Relay("127.0.0.1", 1)
    hung = Case(DAYS["whole day"], (), HUNG)
    relay.hits = [7]
    await ended(Log(), hung, {"dispatch": relay})
    relay.hits = [8]
    await ended(Log(), Case(DAYS["whole day"]), {"dispatch": relay})
    with pytest.raises(DeskError, match="dispatch hung, and no watchdog ended it"):
        await ended(Log(), hung, {"dispatch": relay})


async def test_a_sample_of_all_writes_of_the_refund_breaks_nothing(stage: Stage) -> None:
    found = await sweep.points(stage, SUPPORT, [DUPLICATE])
    assert {c.agents for c in found.cases} == {("triage",), ("resolver",), ("billing",)}
    assert len(found.cases) > 100 and {c.way for c in found.asking} == {ANSWERED}
    assert found.undisturbed["duplicate"]["paid"] == 1
    rows = await sweep.spread(sweep.sample(found.cases, 6, seed=7), lambda c: sweep.perform(stage, c))
    assert [(row.reached, row.violations) for row in rows] == [(True, ())] * 6
