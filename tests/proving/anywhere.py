"""Both desks once, as a program: a ticket whose resolver is killed, and a delivery day. What came of it as JSON.

`python anywhere.py FOLDER`; where the stack is, LASER_CONNECTION_STRING says. It imports nothing of the tests, so it
also runs where there is no embedded stack.
"""

import asyncio
import importlib
import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from desk.control import start
from desk.control.day import approve_the_dispute, mend_the_gateway
from desk.delivery.incidents import FIVE

_LONG = 100.0
_ENDS = ("delivered", "failed", "returned")


def stack_is_importable() -> bool:
    try:
        importlib.import_module(
            "desk.stack.__main__"
        )  # a folder nobody may read is an empty namespace to Python
    except ImportError:
        return False
    return True


async def ticket(folder: str) -> dict[str, Any]:
    support = await start("support", data=folder, policy_pause=0.3)
    try:
        number = await support.run("duplicate", kill="resolver", at="checkpoint", timeout=_LONG)
        kinds = Counter(
            event["kind"] for event in support.events() if event["kind"] not in ("killed", "died", "agent_up")
        )
        return {"counts": asdict(support.counts(number)), "kinds": kinds}
    finally:
        await support.stop()


async def day(folder: str) -> dict[str, Any]:
    fleet = await start("fleet", data=folder, day="d1", speed="max", vans=2, orders=1, incidents=FIVE)
    people = [asyncio.create_task(person(fleet)) for person in (mend_the_gateway, approve_the_dispute)]
    try:
        await fleet.until_over(_LONG)
        ends = [(e["stop"], e["van"], e["kind"], e["minute"]) for e in fleet.events() if e["kind"] in _ENDS]
        told = [e["text"] for e in fleet.events() if e["kind"] == "told"]
        checks = [asdict(check) for check in await fleet.checks()]
        return {"ends": sorted(ends), "told": sorted(told), "checks": checks}
    finally:
        for person in people:
            person.cancel()
        await asyncio.gather(*people, return_exceptions=True)
        await fleet.stop()


async def main(folder: str) -> dict[str, Any]:
    both = await asyncio.gather(ticket(folder), day(folder))
    return {"stack": stack_is_importable(), "support": both[0], "fleet": both[1]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
