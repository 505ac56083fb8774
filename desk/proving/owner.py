"""A program that owns a desk, for others to kill: `python -m desk.proving.owner DESK FOLDER [--resume] [--chaos S]`.

It opens one ticket of each scenario, or lives a delivery day, with its people; resumed, it goes on with what there is.
JSON lines on stdout: {"up": pids}, {"events": how many}, {"done": the judge's run}, or {"says": the sentence a person
gets}. When it is done it stays until stdin ends, so that the stack can be asked.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import laser_sdk as ls

from desk.control import start
from desk.control.day import approve_the_dispute, mend_the_gateway
from desk.control.errors import DeskError
from desk.control.fleet import AGENTS as FLEET
from desk.control.fleet import FleetDesk
from desk.control.support import AGENTS as SUPPORT_AGENTS
from desk.control.support import SupportDesk
from desk.delivery.incidents import FIVE
from desk.proving.plays import PLAYS, SUPPORT
from desk.supervisor.client import ProcessState

STACK = "stack"
_LONG = 600.0  # seconds: a desk may be killed many times meanwhile
_HOLD = 1.0  # seconds: without a hold the tickets can be done before anybody has been killed
_DAY = "d1"
_TICKETS = [play for play in PLAYS.values() if play.name == play.scenario]


def say(**fields: Any) -> None:
    """One line, at once."""
    print(json.dumps(fields), flush=True)


async def own(told: argparse.Namespace) -> None:
    """Start or resume, see everything through, stay until stdin ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    live = _tickets if told.desk == SUPPORT else _day
    desk = await _start(told)
    gone, alone = asyncio.create_task(_gone(desk)), asyncio.create_task(reader.read())
    try:
        say(up=_pids(desk, told.desk), connection=desk.supervisor.connection)
        desk.supervisor.listen(lambda state: say(up=_pids(desk, told.desk)))
        say(events=len(desk.events()))
        desk.listen(lambda new: say(events=len(desk.events())))
        if told.chaos:
            names = [*(SUPPORT_AGENTS if told.desk == SUPPORT else FLEET), STACK]
            await desk.supervisor.chaos(True, every=told.chaos, seed=told.seed, names=names)
        living = asyncio.create_task(live(desk))
        await asyncio.wait({living, gone, alone}, return_when=asyncio.FIRST_COMPLETED)
        if not living.done():
            raise DeskError(gone.result() if gone.done() else "Nobody owns this owner any more.")
        await living
        if told.chaos:
            await desk.supervisor.chaos(False)
        deaths = {name: state.deaths for name, state in desk.processes.items()}
        say(done=_run(desk, told), deaths=deaths)
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


def _pids(desk: Any, which: str) -> dict[str, int]:
    return {"supervisor": desk.supervisor.pid, **{name: s.pid for name, s in desk.processes.items()}}


async def _tickets(desk: SupportDesk) -> None:
    """A ticket of each scenario: the missing ones are opened, all are seen through."""
    number = json.loads(bytes(await desk.laser.kv("counters").get("ticket") or b"0"))
    for play in _TICKETS[number:]:
        await desk.open_ticket(play.scenario)
    say(opened=True)
    await asyncio.gather(*(desk.see_through(f"t-{n}", timeout=_LONG) for n in range(1, len(_TICKETS) + 1)))


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


async def _again(desk: FleetDesk, person: Any) -> None:
    """A person whose stack went away, or who has waited long, tries again."""
    while True:
        try:
            await person(desk)
            return
        except (ls.LaserError, DeskError):
            await asyncio.sleep(0.2)


def _run(desk: Any, told: argparse.Namespace) -> dict[str, Any]:
    """What the judge is to be told."""
    if told.desk != SUPPORT:
        return {"stream": desk.stream, "disputes": 1, "answer": "approved", "expected": None}
    return {
        "stream": desk.stream,
        "bank": str(desk.folder / "bank.sqlite"),
        "tickets": len(_TICKETS),
        "issues": sum(play.issues for play in _TICKETS),
        "refunds": sum(play.refunds for play in _TICKETS),
        "declined": 0,
        "ledger": True,
        "expected": None,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m desk.proving.owner", description=__doc__)
    parser.add_argument("desk")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--chaos", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--vans", type=int, default=2)
    parser.add_argument("--orders", type=int, default=1)
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
