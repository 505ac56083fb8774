"""Running delivery days in tests: unwatched, on a free port, with somebody at the desk and somebody who kills."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from desk.control import start
from desk.control.day import approve_the_dispute, mend_the_gateway
from desk.control.fleet import FleetDesk

Outcome = tuple[str, str, str, float]
LONG = 60.0  # seconds; a day takes a few, unless the machine is busy


@asynccontextmanager
async def running(folder: Path, **options: Any) -> AsyncIterator[FleetDesk]:
    """A delivery desk whose clock nobody watches; everything of it ends with the block."""
    options = {"speed": "max", "vans": 3, "orders": 4, **options}
    fleet = await start("fleet", name="day", data=str(folder), **options)
    try:
        yield fleet
    finally:
        await fleet.stop()


@asynccontextmanager
async def attended(fleet: FleetDesk, *, bill: bool = True) -> AsyncIterator[None]:
    """Somebody mends the gateway and, if the carrier bills too much, approves the dispute."""
    people = [asyncio.create_task(mend_the_gateway(fleet))]
    if bill:
        people.append(asyncio.create_task(approve_the_dispute(fleet)))
    try:
        yield
    finally:
        for person in people:
            person.cancel()
        await asyncio.gather(*people, return_exceptions=True)


def dying(places: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The switches that make each of these processes hold still, once, after its event at that place."""
    return {name: {"die_at": place} for name, place in places.items()}


async def slay(fleet: FleetDesk, places: Mapping[str, str]) -> None:
    """Kill each process at its place, as soon as it holds still there."""

    async def one(name: str, place: str) -> None:
        kind, _, step = place.partition(":")
        await fleet.until(kind, agent=name, **({"step": step} if step else {}), timeout=LONG)
        await fleet.kill(name, by="test")

    await asyncio.gather(*(one(name, place) for name, place in places.items()))


async def kill_and_await(fleet: FleetDesk, name: str) -> None:
    """Kill a process and wait until its replacement says on the log that it is up."""
    before = len(fleet.log.rows)
    dead = await fleet.kill(name, by="test")

    def is_up(event: dict[str, Any]) -> bool:
        return event["kind"] == "agent_up" and event["agent"] == name and event["pid"] != dead

    await until_true(lambda: any(is_up(event) for event in fleet.log.rows[before:]))


async def until_true(condition: Callable[[], bool]) -> None:
    """Wait for something the log or the supervisor will tell. Fails when it takes long."""
    async with asyncio.timeout(LONG):
        while not condition():  # noqa: ASYNC110 (what is waited for is in another process)
            await asyncio.sleep(0.01)


def outcomes(fleet: FleetDesk) -> list[Outcome]:
    """(stop, van, outcome, demo minute) of everything that became of a parcel, raw."""
    kinds = ("delivered", "failed", "returned")
    return sorted((e["stop"], e["van"], e["kind"], e["minute"]) for e in fleet.events() if e["kind"] in kinds)


async def all_hold(fleet: FleetDesk) -> None:
    """Every end-of-day check holds."""
    failing = [check for check in await fleet.checks() if not check.holds]
    assert not failing, failing
