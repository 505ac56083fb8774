"""One run of the support desk: a stream of its own, one ticket, some of its agents behind relays."""

import asyncio
import contextlib
from typing import Any

from desk.control import support as desks
from desk.control.errors import DeskError
from desk.proving.cases import ANSWERED, STOPPED, VARIANTS, Case, Done
from desk.proving.relay import Relay
from desk.proving.stage import Stage, all_fired, done, introduce, replacement
from desk.proving.stray import go_on, replaced
from desk.support.agent import EVENTS

_READ = 0.5  # seconds for an event to be written and read
_LONG = 60.0  # seconds a ticket may take under a kill before its run is a violation


async def perform(stage: Stage, case: Case) -> Done:
    """Open the ticket, answer, wait until everything is acknowledged, judge."""
    support = await desks.start(
        name=f"run-{next(stage.numbers)}", data=stage.folder, connection=stage.connection
    )
    relays = stage.relays(case, admits=case.way != ANSWERED)
    introduce(relays, support)
    asked: dict[str, int] = {}
    trouble: list[str] = []
    try:
        for agent, told in (await stage.switches(case, relays)).items():
            await support.supervisor.restart(agent, **told)
        ticket = await support.open_ticket(case.play.scenario)
        see = _stopped if case.way == STOPPED else _see
        await see(support, ticket, case, relays, asked)
        await all_fired(relays)
        for relay in relays.values():
            relay.admit()
        await _quiet(support)
    except DeskError as error:
        trouble.append(str(error))
    finally:
        await support.stop()
        for relay in relays.values():
            await relay.close()
    verdict = await stage.judge(case.play.desk, _run(stage, support, case))
    return done(case, relays, asked, trouble, verdict)


async def _see(
    support: desks.SupportDesk, ticket: str, case: Case, relays: dict[str, Relay], asked: dict[str, int]
) -> None:
    """See the ticket through. Where the agent is to be dead when the person answers, it first is."""
    answer = support.approve if case.play.answer == "approve" else support.decline
    if case.way == ANSWERED:
        [relay] = relays.values()
        await relay.fired.wait()
        with contextlib.suppress(DeskError):  # killed before it could ask: it is asked later
            await support.until(ticket, "asked", timeout=_READ)
            await answer(ticket)
        relay.admit()
    event = await support.until(ticket, "asked", "closed", timeout=_LONG)
    if event["kind"] == "closed":
        return
    if not case.kills:
        await _quiet(support)
        asked |= {agent: len(relay.seen) for agent, relay in relays.items()}
    await answer(ticket)
    await support.until(ticket, "closed", timeout=_LONG)


async def _stopped(
    support: desks.SupportDesk, ticket: str, case: Case, relays: dict[str, Relay], asked: dict[str, int]
) -> None:
    """See the ticket through with a replacement, then let the stopped agent go on."""
    [(agent, relay)] = relays.items()
    spec = replacement(support, agent, f"desk.support.{agent}", EVENTS)
    async with replaced(spec, relay):
        await _see(support, ticket, case, relays, asked)
        await all_fired(relays)
        if relay.hits:
            await go_on(agent, relay, support.supervisor)
            await _quiet(support)


def _run(stage: Stage, support: desks.SupportDesk, case: Case) -> dict[str, Any]:
    play = case.play
    return {
        "stream": support.stream,
        "bank": str(support.folder / "bank.sqlite"),
        "tickets": 1,
        "issues": play.issues,
        "refunds": play.refunds,
        "declined": play.declined,
        "ledger": not ("baseline" in case.way and "billing" in case.agents),
        # what is missing in a comparison is missing without a kill too
        "expected": None if case.way in VARIANTS else stage.expected.get(play.name),
    }


async def _quiet(support: desks.SupportDesk) -> None:
    """Wait until every agent has acknowledged everything there is. Raises DeskError when one does not."""
    end = asyncio.get_running_loop().time() + _LONG
    while True:
        behind = [
            name
            for name in desks.AGENTS
            if not (offsets := await support.group(name)) or any(o.stored != o.head for o in offsets)
        ]
        if not behind:
            return
        if asyncio.get_running_loop().time() > end:
            raise DeskError(f"{', '.join(behind)} left something unacknowledged.")
        await asyncio.sleep(0.02)
