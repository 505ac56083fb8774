"""One run of the support desk: a stream of its own, one ticket, some of its agents behind relays."""

import asyncio
from typing import Any

from desk.control import support as desks
from desk.control.errors import DeskError
from desk.control.questions import asked as questions
from desk.proving.cases import ANSWERED, STOPPED, VARIANTS, Case, Done
from desk.proving.plays import Play
from desk.proving.relay import Relay
from desk.proving.stage import PROGRAM, Stage, all_fired, done, ended, introduce, on_log, replacement
from desk.proving.stray import go_on, replaced
from desk.support.agent import EVENTS

_LONG = 60.0  # seconds a ticket may take under a kill before its run is a violation
_ASKS = 30.0  # seconds within which a point comes that comes with the question


async def perform(stage: Stage, case: Case) -> Done:
    """Open the ticket, answer, wait until everything is acknowledged, judge."""
    support = await desks.start(
        name=f"run-{next(stage.numbers)}", data=stage.folder, connection=stage.connection, llm=case.play.llm
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
        await ended(support.log, case, relays)
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
    if case.way == ANSWERED and await _answered_while_dead(support, ticket, case, relays):
        await support.until(ticket, "closed", timeout=_LONG)
        return
    event = await support.until(ticket, "asked", "closed", timeout=_LONG)
    if event["kind"] == "closed":
        return
    if case.play.then:
        await _quiet(support)
        await support.until(await support.open_ticket(case.play.then), "closed", timeout=_LONG)
    if not case.kills:
        await _quiet(support)
        asked |= {agent: len(relay.seen) for agent, relay in relays.items()}
    await _answer(support, ticket, case.play)
    await support.until(ticket, "closed", timeout=_LONG)


async def _answered_while_dead(
    support: desks.SupportDesk, ticket: str, case: Case, relays: dict[str, Relay]
) -> bool:
    """Answer when the agent is dead, then let another come. Whether it was so: else the point is not reached."""
    [relay] = relays.values()
    try:
        async with asyncio.timeout(_ASKS):
            await relay.fired.wait()
        # whoever asks is dead: it is there, or it will not be
        if asked := await on_log(support.laser, EVENTS, kind="asked", ticket=ticket):
            await _answer(support, ticket, case.play)
    except TimeoutError:
        asked = False
    finally:
        relay.admit()
    if not asked:  # nobody could know of the question yet
        relay.hits.clear()
    return asked


async def _answer(support: desks.SupportDesk, ticket: str, play: Play) -> None:
    """Say what is to be said, each when it has been asked."""
    for answer in play.answers:
        step = f"{ticket}:resolve-{answer.issue}"
        await support.log.wait(
            lambda event, step=step: event["kind"] == "asked" and event["step"] == step,
            _LONG,
            lambda step=step: f"Nobody asked about {step}.",
        )
        [question] = [question for question in questions(support.log.rows) if question.handoff == step]
        await support.lane.answer(question, answer.ok, answer.by)


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
        "tickets": play.tickets,
        "issues": play.issues,
        "refunds": play.refunds,
        "declined": play.declined,
        "ledger": not ("baseline" in case.way and "billing" in case.agents),
        # what is missing in a comparison is missing without a kill too; nobody knows what the program will write
        "expected": None if case.way in VARIANTS or play.llm == PROGRAM else stage.expected.get(play.name),
    }


async def _quiet(support: desks.SupportDesk) -> None:
    """Wait until every agent has acknowledged everything there is. Raises DeskError when one does not."""
    end = asyncio.get_running_loop().time() + _LONG
    while True:
        tickets = {event["ticket"] for event in support.log.rows if event.get("ticket")}
        behind = {name for ticket in tickets for name in await support.behind(ticket)}
        if not behind:
            return
        if asyncio.get_running_loop().time() > end:
            raise DeskError(f"{', '.join(sorted(behind))} left something unacknowledged.")
        await asyncio.sleep(0.02)
