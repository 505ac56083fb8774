"""A program that owns a desk, for others to kill: `python -m desk.proving.owner DESK FOLDER [--resume] [--chaos S]`.

It opens tickets of each scenario, or lives a delivery day, with its people; resumed, it goes on with what there is.
JSON lines on stdout: {"up": pids, "deaths": how often each died, as the supervisor counts}, {"events": how many},
{"done": the judge's run, "loose": for how many seconds of the work the monkey was loose, "taken": whom it took how
often, "fallen": how often the stack died and the supervisor had not been asked}, or {"says": the sentence a person
gets}. When it is done it stays until stdin ends, so that the stack can be asked.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cbor2
import laser_sdk as ls

from desk.control import start
from desk.control.day import approve_the_dispute, mend_the_gateway
from desk.control.errors import DeskError
from desk.control.fleet import AGENTS as FLEET
from desk.control.fleet import FleetDesk
from desk.control.lane import Ticket
from desk.control.support import AGENTS as SUPPORT_AGENTS
from desk.control.support import SupportDesk
from desk.delivery.incidents import FIVE
from desk.proving.plays import PLAYS, SUPPORT, Play
from desk.supervisor.client import ProcessState
from desk.support import world
from desk.support.agent import LANE
from desk.support.tickets import SCENARIOS, message

STACK = "stack"
_LONG = 600.0  # seconds: a desk may be killed many times meanwhile
_HOLD = 1.0  # seconds: without a hold the tickets can be done before anybody has been killed
_DAY = "d1"
_WRITTEN = 15.0  # seconds within which what the supervisor has to say is on the log
_TICKETS = [play for play in PLAYS.values() if play.name == play.scenario]


def say(**fields: Any) -> None:
    """One line, at once."""
    print(json.dumps(fields), flush=True)


async def own(told: argparse.Namespace) -> None:
    """Start or resume, see everything through, stay until stdin ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    began = time.time()
    desk = await _start(told)
    gone, alone = asyncio.create_task(_gone(desk)), asyncio.create_task(reader.read())
    try:
        say(up=_pids(desk), deaths=_deaths(desk), connection=desk.supervisor.connection)
        desk.supervisor.listen(lambda state: say(up=_pids(desk), deaths=_deaths(desk)))
        say(events=len(desk.events()))
        desk.listen(lambda new: say(events=len(desk.events())))
        if told.chaos:
            names = [*(SUPPORT_AGENTS if told.desk == SUPPORT else FLEET), STACK]
            await desk.supervisor.chaos(True, every=told.chaos, seed=told.seed, names=names)
        since = time.monotonic()
        living = asyncio.create_task(
            _tickets(desk, told.rounds, told.resume) if told.desk == SUPPORT else _day(desk)
        )
        await asyncio.wait({living, gone, alone}, return_when=asyncio.FIRST_COMPLETED)
        loose = round(time.monotonic() - since, 2) if told.chaos else 0.0
        if not living.done():
            living.cancel()
            await asyncio.wait({living})
            raise DeskError(gone.result() if gone.done() else "Nobody owns this owner any more.")
        await living
        if told.chaos:
            await desk.supervisor.chaos(False)
        await _all_written(desk, began)
        rows, deaths = desk.events(), _deaths(desk)
        say(done=_run(desk, told), deaths=deaths, loose=loose, taken=taken(rows, deaths), fallen=fallen(rows))
        await alone
    finally:
        gone.cancel()
        await desk.stop()


async def _start(told: argparse.Namespace) -> Any:
    if told.desk == SUPPORT:
        return await start("support", data=told.folder, resume=told.resume, policy_pause=_HOLD)
    day = {"day": _DAY, "vans": told.vans, "orders": told.orders}
    return await start(
        "fleet",
        data=told.folder,
        resume=told.resume,
        speed="max",
        incidents=FIVE,
        **({} if told.resume else day),
    )


async def _gone(desk: Any) -> str:
    """Wait until the supervisor has ended; what its desk says then."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look(state: ProcessState) -> None:
        if state.error == "The supervisor has ended." and not ended.done():
            ended.set_result(None)

    desk.supervisor.listen(look)
    await ended
    try:
        await desk.kill("stack")
    except DeskError as error:
        return str(error)
    return ""


def _pids(desk: Any) -> dict[str, int]:
    return {"supervisor": desk.supervisor.pid, **{name: s.pid for name, s in desk.processes.items()}}


def _deaths(desk: Any) -> dict[str, int]:
    return {name: state.deaths for name, state in desk.processes.items()}


def taken(rows: Sequence[Mapping[str, Any]], deaths: Mapping[str, int]) -> dict[str, int]:
    """Whom the monkey took how often: who it said it would kill, as far as the supervisor then counted a death. Others
    leave by themselves when the stack goes.
    """
    said = Counter(agent for agent, _ in {(e["agent"], e["pid"]) for e in _ends(rows, "killed", by="chaos")})
    both = {name: min(number, deaths.get(name, 0)) for name, number in sorted(said.items())}
    return {name: number for name, number in both.items() if number}


def fallen(rows: Sequence[Mapping[str, Any]]) -> int:
    """How often the stack died without the supervisor having been asked, in all its lives."""
    return len({event["pid"] for event in _ends(rows, "died", agent=STACK)})


def _ends(rows: Sequence[Mapping[str, Any]], *kinds: str, **fields: str) -> list[Mapping[str, Any]]:
    return [
        e for e in rows if e["kind"] in kinds and all(e.get(name) == told for name, told in fields.items())
    ]


async def _all_written(desk: Any, since: float) -> None:
    """Wait until the deaths of the stack, which are on the log only when there is one again, are there."""

    def missing() -> bool:
        ends = {e["pid"] for e in _ends(desk.events(), "killed", "died", agent=STACK) if e["at"] >= since}
        return len(ends) < _deaths(desk)[STACK]

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_WRITTEN):
            while missing():  # noqa: ASYNC110 the log tells nobody that it is complete
                await asyncio.sleep(0.05)


async def _tickets(desk: SupportDesk, rounds: int, resumed: bool) -> None:
    """A ticket of each scenario, so many times over, one round after the other: those nobody has sent are opened, all
    are seen through.

    Numbered here and not by `open_ticket`: who dies while that runs does not know which ticket it was, and what comes
    of the next would be other work than that of somebody who lived on.
    """
    say(opened=True)
    sent = await _again(desk, _sent) if resumed else frozenset()
    for times in range(rounds):
        tickets = [
            _ticket(play.scenario, times, n) for n, play in enumerate(_TICKETS, times * len(_TICKETS) + 1)
        ]
        for ticket in tickets:
            if ticket not in sent:
                await _open(desk, ticket)
        await asyncio.gather(*(desk.see_through(ticket, timeout=_LONG) for ticket in tickets))


async def _sent(desk: SupportDesk) -> frozenset[str]:
    """The tickets whose message is in the lane, whether or not anybody has read it yet."""
    rows: Any = desk.laser.topic(LANE).replay()
    keys: set[str] = set()
    while some := await rows.poll():
        keys.update(cbor2.loads(bytes(message.payload)).get("idempotency_key", "") for message in some)
    return frozenset(keys)


def _ticket(scenario: str, opened: int, number: int) -> Ticket:
    text, customer, _ = message(scenario, opened, world.load())
    return Ticket(f"t-{number}", scenario, text, customer)


async def _open(desk: SupportDesk, ticket: Ticket) -> None:
    """Begun before anything is sent, and not once more after that: it could have ended by then."""
    await _again(desk, lambda desk: desk.lane.begin(ticket))
    for _ in range(2 if SCENARIOS[ticket.scenario].twice else 1):
        await _again(desk, lambda desk: desk.lane.send(ticket))


async def _day(desk: FleetDesk) -> None:
    """The day with its people."""
    say(opened=True)
    people = [asyncio.create_task(_again(desk, person)) for person in (mend_the_gateway, approve_the_dispute)]
    try:
        await desk.until_over(_LONG)
    finally:
        for person in people:
            person.cancel()
        await asyncio.gather(*people, return_exceptions=True)


async def _again(desk: Any, person: Any) -> Any:
    """A person whose stack went away, or who has waited long, tries again."""
    while True:
        try:
            return await person(desk)
        except (ls.LaserError, DeskError):
            await asyncio.sleep(0.2)


def _run(desk: Any, told: argparse.Namespace) -> dict[str, Any]:
    """What the judge is to be told."""
    if told.desk != SUPPORT:
        return {"stream": desk.stream, "disputes": 1, "answer": "approved", "expected": None}
    return {
        "stream": desk.stream,
        "bank": str(desk.folder / "bank.sqlite"),
        "tickets": len(_TICKETS) * told.rounds,
        "issues": sum(play.issues for play in _TICKETS) * told.rounds,
        "refunds": sum(_refunds(play, times) for times in range(told.rounds) for play in _TICKETS),
        "declined": 0,
        "ledger": True,
        "expected": None,
    }


def _refunds(play: Play, times: int) -> int:
    """How many a ticket has that was opened so many times before: a charge is refunded once."""
    return play.refunds if times < max(1, len(SCENARIOS[play.scenario].orders)) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m desk.proving.owner", description=__doc__)
    parser.add_argument("desk")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--chaos", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--vans", type=int, default=2)
    parser.add_argument("--orders", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="of tickets")
    told = parser.parse_args()
    try:
        asyncio.run(own(told))
    except DeskError as error:
        say(says=str(error))
        return 1
    return 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
