"""One run of the delivery desk: a day on a stream of its own, some of its processes behind relays."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import laser_sdk as ls

from desk.control import fleet as desks
from desk.control.day import mend_the_gateway
from desk.control.errors import DeskError
from desk.delivery.incidents import to_text
from desk.delivery.layout import EVENTS, INBOX
from desk.proving.cases import ANSWERED, ONCE, STOPPED, Case, Done
from desk.proving.plays import ASKED, Day
from desk.proving.relay import Relay
from desk.proving.stage import FIRED, PROGRAM, Stage, all_fired, done, ended, introduce, on_log, replacement
from desk.proving.stray import go_on, replaced

_LONG = 110.0  # seconds a day may take under a kill before its run is a violation
_REPORTS = 20  # position reports after which the problems of a day's first minute are on the log
_HOLD = 0.01  # seconds: so that there is a hold to repeat
_GROUPS = tuple(name for name, (_, skills) in desks.AGENTS.items() if skills)


async def perform(stage: Stage, case: Case) -> Done:
    """Live the day, wait until everything is acknowledged, judge."""
    number = next(stage.numbers)
    day = f"p{number}"
    relays = stage.relays(
        case, admits=case.way != ANSWERED, name=lambda what: what.replace(f"{day}-", "day-")
    )
    if case.play.meets:
        for agent in ("dispatch", "simulator"):
            relays.setdefault(agent, stage.relay())
        relays["dispatch"].shut()
        beginning = asyncio.create_task(_begin(relays, case.play.meets))
    asked: dict[str, int] = {}
    trouble: list[str] = []
    fleet = None
    try:
        fleet = await desks.start(
            name=f"run-{number}",
            day=day,
            data=stage.folder,
            connection=stage.connection,
            vans=case.play.vans,
            orders=case.play.orders,
            incidents=case.play.incidents,
            switches=_with(await stage.switches(case, relays), case.play),
            speed=case.play.speed,
            llm=case.play.llm,
            step_pause=_HOLD,
        )
        introduce(relays, fleet)
        live = _stopped if case.way == STOPPED else _live
        await live(fleet, case, relays, asked)
        await all_fired(relays)
        for relay in relays.values():
            relay.admit()
        await _quiet(fleet)
        await ended(fleet.log, case, relays)
    except (DeskError, ls.LaserError) as error:
        trouble.append(str(error))
    finally:
        if fleet:
            await fleet.stop()
        if case.play.meets:
            beginning.cancel()
        for relay in relays.values():
            await relay.close()
    run = {
        "stream": f"fleet-{day}",
        "disputes": case.play.disputes,
        "answer": _decided(case.play),
        # a watched day is another each time, and nobody knows what the program will write
        "expected": None
        if case.play.speed != "max" or case.play.llm == PROGRAM
        else stage.expected.get(case.play.name),
    }
    verdict = await stage.judge(case.play.desk, run)
    return done(case, relays, asked, trouble, verdict)


async def _begin(relays: dict[str, Relay], agents: Sequence[str]) -> None:
    """Let dispatch in when both problems are on the log and these agents are there: it gives one to each."""

    def ready() -> bool:
        up = all(any(write.up for write, _ in relays[agent].seen) for agent in agents)
        reports = sum(str(write) == "send fleet.positions" for write, _ in relays["simulator"].seen)
        return up and reports >= _REPORTS

    await _until(ready)
    relays["dispatch"].admit()


async def _live(fleet: desks.FleetDesk, case: Case, relays: dict[str, Relay], asked: dict[str, int]) -> None:
    """The day with its people. Raises DeskError also when not everything was said that is to be said."""
    mending = asyncio.create_task(mend_the_gateway(fleet))
    answering = asyncio.create_task(_answer(fleet, case, relays, asked)) if case.play.disputes else None
    try:
        await fleet.until_over(_LONG)
        if answering:
            await answering
    finally:
        people = [person for person in (mending, answering) if person]
        for person in people:
            person.cancel()
        await asyncio.gather(*people, return_exceptions=True)


async def _answer(
    fleet: desks.FleetDesk, case: Case, relays: dict[str, Relay], asked: dict[str, int]
) -> None:
    """Answer about the bill. Where the agent is to be dead when the person answers, it first is: else the point is not
    reached."""
    if case.play.within:
        await _say_too_late(fleet, case.play)
        return
    if case.way == ANSWERED:
        [relay] = relays.values()
        await relay.fired.wait()
        try:
            if await on_log(fleet.laser, EVENTS, kind="asked"):  # whoever asks is dead
                await fleet.until("asked", timeout=_LONG)
                await _say(fleet, case.play)
                return
            relay.hits.clear()  # nobody could know of the question yet
        finally:
            relay.admit()
    await fleet.until("asked", timeout=_LONG)
    if not case.kills:
        await _until(lambda: _waits(relays[case.play.asks]))
        asked |= {agent: len(relay.seen) for agent, relay in relays.items()}
    elif case.play.since == ASKED and case.way == ONCE:
        await _asked_again(fleet, *relays.values())
    await _say(fleet, case.play)


def _waits(relay: Relay) -> bool:
    """Whether the invoice agent, which has asked, has written what comes next: its request at the gate."""
    latest, _ = relay.seen[-1]
    return str(latest) != "send fleet.events"


async def _asked_again(fleet: desks.FleetDesk, relay: Relay) -> None:
    """The person takes some time: whoever is to be killed before it waits is, and its replacement asks too."""
    await _until(lambda: relay.due or _waits(relay))
    if relay.due:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRED):
                await relay.fired.wait()
    if relay.hits:
        await fleet.log.wait(
            lambda event: event["kind"] == "asked" and event["pid"] != relay.hits[0],
            _LONG,
            lambda: "Who was killed after it had asked was not followed by another who asks.",
        )
        await _until(lambda: _waits(relay))


async def _until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 (nothing tells)
        await asyncio.sleep(0.02)


async def _say(fleet: desks.FleetDesk, play: Day) -> None:
    """What is to be said about the bill."""
    for answer in play.answers:
        say = fleet.approve if answer.ok else fleet.decline
        await say(f"{fleet.day}-bill", by=answer.by)


async def _say_too_late(fleet: desks.FleetDesk, play: Day) -> None:
    """Answer when nobody is waiting for that any more. Raises DeskError when it is taken all the same."""
    await fleet.until("undecided", timeout=_LONG)
    try:
        await _say(fleet, play)
    except DeskError as error:
        if "in time" not in str(error):
            raise
    else:
        raise DeskError("An answer was taken that came too late.")


def _decided(play: Day) -> str:
    """What a judge is to find decided about the bill."""
    if play.within:
        return "undecided"
    return "approved" if play.answers[0].ok else "declined"


async def _stopped(
    fleet: desks.FleetDesk, case: Case, relays: dict[str, Relay], asked: dict[str, int]
) -> None:
    """Live the day with a replacement, then let the stopped process go on."""
    [(agent, relay)] = relays.items()
    module = f"desk.delivery.{desks.AGENTS[agent][0]}"
    told = _with({}, case.play).get(agent, {})
    spec = replacement(fleet, agent, module, EVENTS, **_world(case.play), **told)
    async with replaced(spec, relay):
        await _live(fleet, case, relays, asked)
        await all_fired(relays)
        if relay.hits:
            await go_on(agent, relay, fleet.supervisor)
            await _quiet(fleet)


def _with(switches: dict[str, dict[str, str]], play: Day) -> dict[str, dict[str, str]]:
    """And how long a person has to answer."""
    if not play.within:
        return switches
    return {**switches, play.asks: {**switches.get(play.asks, {}), "answer_within": str(play.within)}}


def _world(play: Day) -> dict[str, str]:
    """What a simulator is told of its day."""
    return {"vans": str(play.vans), "orders": str(play.orders), "incidents": to_text(play.incidents)}


async def _quiet(fleet: desks.FleetDesk) -> None:
    """Wait until every agent has acknowledged everything there is. Raises DeskError when one does not."""
    end = asyncio.get_running_loop().time() + _LONG
    while behind := await _behind(fleet.laser):
        if asyncio.get_running_loop().time() > end:
            raise DeskError(f"{', '.join(behind)} left something unacknowledged.")
        await asyncio.sleep(0.1)


async def _behind(laser: ls.Laser) -> list[str]:
    """Who has not acknowledged everything in the inbox."""
    rows: Any = laser.topic(INBOX).replay()
    while await rows.poll():
        pass
    found = []
    for name in _GROUPS:
        group = laser.topic(INBOX).consumer_group(name).consumer(
            auto_commit="disabled", auto_join_group=False, create_group=False
        )  # fmt: skip
        for partition, head in enumerate(rows.offsets):
            stored = await group.stored_offset(partition) if head else None
            if head and (stored is None or stored.stored_offset + 1 < head):
                found.append(name)
                break
    return found
