"""A desk's whole work with deaths in it: a program of its own owns the desk, is killed with or without what is below
it, and is started again with `resume=True` until it is done.
"""

import asyncio
import contextlib
import json
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from desk.proving.plays import DELIVERY
from desk.proving.stage import JUDGES, pipes, python

STACK, SUPERVISOR, KERNEL, SIMULATOR = "stack", "supervisor", "kernel", "simulator"
GROUP, BIRTH = "process group", "process group while it starts"
_YOUNG = (0.05, 2.0)  # seconds after which that happens
_ENDING = (SUPERVISOR, KERNEL, GROUP)
"""After which the desk has to be started again."""
_FOLLOW = 20.0  # seconds for everything below to follow its owner
_SPREAD = 1.5  # the longest way between two deaths, in events: this many even shares of the whole


@dataclass
class Outcome:
    """What came of one desk's work. says: the sentences a person got; raw: how often each thing happened; whose: whom
    the monkey took how often.
    """

    desk: str
    what: str
    events: int = 0
    deaths: int = 0
    resumed: int = 0
    says: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    raw: dict[str, int] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=dict)
    whose: dict[str, int] = field(default_factory=dict)


class Owner:
    """The program that owns a desk, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.pids: dict[str, int] = {}
        self.connection = ""
        self.events = 0
        self.opened = False
        self.done: dict[str, Any] = {}
        self.deaths: dict[str, int] = {}
        self.says = ""

    async def listen(self) -> bool:
        """Take in its next line. False when it has ended."""
        line = await pipes(self.process)[1].readline()
        if not line:
            return False
        said = json.loads(line)
        self.pids = said.get("up", self.pids)
        for name in ("connection", "events", "opened", "done", "deaths", "says"):
            setattr(self, name, said.get(name, getattr(self, name)))
        return True

    @property
    def working(self) -> bool:
        """Whether everything is up and there is work."""
        return self.opened and all(self.pids.values()) and not self.done

    def kill(self, whom: str) -> None:
        """SIGKILL."""
        own = psutil.Process(self.process.pid)
        victims = [own] if whom == KERNEL else [] if whom != GROUP else [own, *own.children(recursive=True)]
        victims = victims or [psutil.Process(self.pids[whom])]
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.SIGKILL)


async def live(
    desk: str, folder: Path, deaths: Sequence[str], seed: int, calm: "Outcome | None", *options: str
) -> Outcome:
    """One desk's work, with these deaths in it, in this order, at seeded places of its log. `calm`: the same work
    without one.
    """
    draw = random.Random(f"{desk}:{seed}:{len(deaths)}")
    apart = max(1, round(_SPREAD * calm.events / (len(deaths) + 1))) if calm else 1
    found = Outcome(desk, ", ".join(dict.fromkeys(deaths)) or "nothing")
    left, resume = list(deaths), False
    while True:
        owner = Owner(
            await python(
                "-m", "desk.proving.owner", desk, str(folder), *options, *["--resume"][: int(resume)]
            )
        )
        below: list[psutil.Process] = []
        due, ending = draw.randint(1, apart), False
        first = None
        if left and left[0] == BIRTH:
            await asyncio.sleep(draw.uniform(*_YOUNG))
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended, with a sentence
                below = psutil.Process(owner.process.pid).children(recursive=True)
                owner.kill(GROUP)
                whom, ending = left.pop(0), True
                found.deaths += 1
        while await owner.listen():
            first = owner.events if first is None and owner.opened else first
            if owner.done:
                break
            if left and owner.working and not ending and owner.events >= (first or 0) + due:
                whom = left.pop(0)
                with contextlib.suppress(psutil.NoSuchProcess):  # it has just died of another's death
                    below = psutil.Process(owner.process.pid).children(recursive=True)
                    owner.kill(whom)
                    found.deaths += 1
                    ending = whom in _ENDING
                first, due = owner.events, draw.randint(1, apart)
        if owner.done and not ending:
            if "--chaos" in options:
                found.whose = {name: number for name, number in owner.deaths.items() if number}
                found.deaths += sum(found.whose.values())
            found.events = owner.events
            await judge(owner, found, calm.outcome if calm else None)
            pipes(owner.process)[0].close()
            await owner.process.wait()
            return found
        if owner.done:  # it was killed when it had just got done: resumed, its stack can be asked
            pipes(owner.process)[0].close()
        await owner.process.wait()
        _, alive = await asyncio.to_thread(psutil.wait_procs, below, _FOLLOW)
        found.violations += [f"{process.name()} outlived the {whom}" for process in alive]
        if owner.says:
            found.says.append(owner.says.replace(str(folder), "FOLDER"))
        elif not ending:
            found.violations.append("it ended without a sentence")
        # When it could not even start: what it says is what is to be done.
        resume = ending or "without resume" not in owner.says
        found.resumed += int(resume)
        if found.resumed > 2 * len(deaths) + 5:
            found.violations.append("it never got done")
            return found


async def judge(owner: Owner, found: Outcome, expected: Any) -> None:
    """Ask the judge about the work that is done; its verdict goes into `found`."""
    judging = await python(JUDGES[found.desk], owner.connection)
    run = {**owner.done, **({"expected": expected} if found.desk == DELIVERY else {})}
    out, _ = await judging.communicate(json.dumps(run).encode() + b"\n")
    verdict = json.loads(out)
    found.violations += verdict["violations"]
    found.raw, found.outcome = verdict["raw"], verdict.get("outcome", {})


async def undisturbed(desk: str, folder: Path, *options: str) -> Outcome:
    """The same work without a death."""
    found = await live(desk, folder, [], 0, None, *options)
    if found.violations:
        raise RuntimeError(f"{desk} without a death: {'; '.join(found.violations)}")
    return found
