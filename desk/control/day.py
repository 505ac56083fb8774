"""`python -m desk delivery --day`: a delivery day with its five incidents and ten kills, every claim checked.

Nobody watches, so the day takes seconds: the clock stands still whenever there is work to do.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil

from desk.control import fleet
from desk.control.errors import DeskError
from desk.control.events import Event
from desk.delivery.checks import Check
from desk.delivery.clock import time_of_day
from desk.delivery.incidents import FIVE
from desk.wording import counted

KILLS = 10
_FIRST, _EACH = 30, 35  # kills fall between this event and so many events a van; a day has some 50 a van
_SHOWN = frozenset(
    [
        "incident",
        "exception",
        "closed",
        "retry",
        "killed",
        "agent_up",
        "replay",
        "resume",
        "parked",
        "fixed",
        "redriven",
        "asked",
        "disputed",
        "paid",
        "van_parked",
        "returned",
        "moot",
        "day_over",
        "bill",
        "fork",
    ]
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The subcommand and its arguments."""
    parser = commands.add_parser(
        "delivery", help="a delivery day with incidents and kills, every claim checked", description=__doc__
    )
    parser.add_argument("--day", action="store_true", help="run the day")
    parser.add_argument("--vans", type=int, default=8, help="how many vans drive: 2 to 8 (default 8)")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"how many kills (default {KILLS})")
    parser.add_argument("--data", default="", help="folder for the day's data, instead of DESK_DATA")
    parser.set_defaults(run=lambda arguments: _run(parser, arguments))


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    if not arguments.day:
        parser.print_help()
        return 2
    settings = {"data": arguments.data} if arguments.data else {}
    return asyncio.run(day(arguments.vans, arguments.kills, **settings))


def kills(seed: int, number: int, vans: int) -> Iterator[tuple[int, str]]:
    """(how many events are on the log, which process to kill), in order. The same seed, the same kills."""
    draw = random.Random(f"kills:{seed}")
    for place in sorted(draw.randrange(_FIRST, _FIRST + _EACH * vans) for _ in range(number)):
        yield place, draw.choice(sorted(fleet.AGENTS))


async def day(vans: int = 8, number: int = KILLS, **settings: Any) -> int:
    """Run it. Returns the exit code: 0 only when every check holds."""
    begun = time.monotonic()
    try:
        desk = await fleet.start(
            name="day", vans=vans, incidents=FIVE, on_line=_print, **{"speed": "max", **settings}
        )
    except DeskError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        checks = await _live(desk, number, vans)
        seconds, cpu = time.monotonic() - begun, cpu_seconds()
    except DeskError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        await desk.stop()
    failed = sum(not check.holds for check in checks)
    _print("")
    for check in checks:
        _print(f"{'holds' if check.holds else 'FAILS'}  {check.claim}: {check.found}")
    _print(f"{seconds:.1f} s, {cpu:.1f} CPU-seconds over all processes")
    _print(f"day closed: {counted(len(checks), 'check')}, {failed} failed")
    return 1 if failed else 0


def cpu_seconds() -> float:
    """What this process and everything below it has used so far, the dead included."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (me, *me.children(recursive=True)))


async def _live(desk: fleet.FleetDesk, number: int, vans: int) -> list[Check]:
    _tell(desk.events())
    desk.listen(_tell)
    helpers = [
        asyncio.create_task(_kill(desk, number, vans)),
        asyncio.create_task(mend_the_gateway(desk)),
        asyncio.create_task(approve_the_dispute(desk)),
    ]
    over = asyncio.create_task(desk.until_over(timeout=110))
    try:
        await asyncio.wait({over, *helpers}, return_when=asyncio.FIRST_EXCEPTION)
        for task in (over, *helpers):
            await task
        return await desk.checks()
    finally:
        for task in (over, *helpers):
            task.cancel()


async def _kill(desk: fleet.FleetDesk, number: int, vans: int) -> None:
    for place, name in kills(desk.settings.seed, number, vans):
        while len(desk.events()) < place:  # noqa: ASYNC110 (a place in the log, not one event)
            await asyncio.sleep(0.005)
        await desk.kill(name, by="day")


async def mend_the_gateway(desk: fleet.FleetDesk) -> None:
    """Somebody who mends the gateway as soon as a message waits on the desk."""
    while True:
        await desk.until("parked", "day_over", timeout=110)
        if await desk.parked():
            await desk.fix_and_redrive()
        over = any(e["kind"] == "day_over" for e in desk.events())
        if over and all(exc["state"] == "closed" for exc in (await desk.exceptions()).values()):
            return  # no sooner: a message may still be on its third attempt when the vans are in
        await asyncio.sleep(0.1)


async def approve_the_dispute(desk: fleet.FleetDesk) -> None:
    """Somebody who approves the dispute."""
    asked = await desk.until("asked", timeout=110)
    await desk.approve(asked["incident"])


def _tell(events: list[Event]) -> None:
    for event in events:
        if event["kind"] in _SHOWN:
            minute = event.get("minute")
            when = time_of_day(minute) if minute is not None else "     "
            about = event.get("incident") or ""
            _print(f"{when}  {event['agent']:10} {event['kind']:10} {about:12} {event.get('text', '')}"[:160])


def _print(line: str) -> None:
    print(line, flush=True)
