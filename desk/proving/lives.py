"""A desk's whole work with deaths in it: a program of its own owns the desk, is killed with or without what is below
it, and is started again with `resume=True` until it is done.
"""

import asyncio
import contextlib
import json
import random
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

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
    """What came of one desk's work. deaths: those that were asked for and came; says: the sentences a person got; raw:
    how often each thing happened; whose: whom the monkey took how often; loose: for how many seconds.
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
    loose: float = 0.0


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
        self.taken: dict[str, int] = {}
        self.loose, self.fallen = 0.0, 0
        self.says = ""
        self.killed: dict[str, list[int]] = {}
        """Whom `kill` has killed below the owner: the pids."""

    async def listen(self) -> bool:
        """Take in its next line. False when it has ended."""
        line = await pipes(self.process)[1].readline()
        if not line:
            return False
        said = json.loads(line)
        self.pids = said.get("up", self.pids)
        for name in ("connection", "events", "opened", "done", "deaths", "taken", "loose", "fallen", "says"):
            setattr(self, name, said.get(name, getattr(self, name)))
        return True

    @property
    def working(self) -> bool:
        """Whether everything is up, whoever was killed has been replaced, and there is work."""
        replaced = all(self.pids.get(name) not in pids for name, pids in self.killed.items())
        return self.opened and all(self.pids.values()) and replaced and not self.done

    @property
    def counted(self) -> int:
        """How many of those killed below it have died, as the supervisor has it too."""
        return sum(
            len(pids) if name == SUPERVISOR else min(len(pids), self.deaths.get(name, 0))
            for name, pids in self.killed.items()
        )

    def kill(self, whom: str) -> bool:
        """SIGKILL. False when there was nobody any more."""
        try:
            if whom in (KERNEL, GROUP):
                own = psutil.Process(self.process.pid)
                below = own.children(recursive=True) if whom == GROUP else []
                first, *_ = [_kill(process) for process in (own, *below)]
                return first
            if killed := _kill(psutil.Process(self.pids[whom])):
                self.killed.setdefault(whom, []).append(self.pids[whom])
            return killed
        except psutil.NoSuchProcess:
            return False


def _kill(process: psutil.Process) -> bool:
    """SIGKILL. False when it is dead already."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    return True


async def live(
    desk: str, folder: Path, deaths: Sequence[str], seed: int, calm: "Outcome | None", *options: str
) -> Outcome:
    """One desk's work, with these deaths in it, in this order, at seeded places of its log. `calm`: the same work
    without one.
    """
    draw = random.Random(f"{desk}:{seed}:{len(deaths)}")
    apart = max(1, round(_SPREAD * calm.events / (len(deaths) + 1))) if calm else 1
    found = Outcome(desk, ", ".join(dict.fromkeys(deaths)) or "nothing")
    left, resume, sent = list(deaths), False, Counter[str]()
    while True:
        owner = Owner(
            await python(
                "-m", "desk.proving.owner", desk, str(folder), *options, *["--resume"][: int(resume)]
            )
        )
        below: list[psutil.Process] = []
        due, ending = draw.randint(1, apart), ""  # who died last, where that ends the desk
        first = None
        if left and left[0] == BIRTH:
            await asyncio.sleep(draw.uniform(*_YOUNG))
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended, with a sentence
                below = psutil.Process(owner.process.pid).children(recursive=True)
                ending = left.pop(0) if owner.kill(GROUP) else ""
        while await owner.listen():
            first = owner.events if first is None and owner.opened else first
            if owner.done:
                break
            if left and owner.working and not ending and owner.events >= (first or 0) + due:
                with contextlib.suppress(psutil.NoSuchProcess):  # the owner has just ended
                    below = psutil.Process(owner.process.pid).children(recursive=True)
                    if owner.kill(left[0]):
                        whom = left.pop(0)
                        ending = whom if whom in _ENDING else ""
                first, due = owner.events, draw.randint(1, apart)
        sent.update({name: len(pids) for name, pids in owner.killed.items()})
        if owner.done and not ending:
            found.deaths += owner.counted + sum(owner.taken.values())
            found.whose, found.loose, found.events = owner.taken, owner.loose, owner.events
            if owner.fallen > sent[STACK]:
                found.violations.append(f"the stack died {owner.fallen} times, killed {sent[STACK]} times")
            await judge(owner, found, calm.outcome if calm else None)
            pipes(owner.process)[0].close()
            await owner.process.wait()
            return found
        if owner.done:  # it was killed when it had just got done: resumed, its stack can be asked
            pipes(owner.process)[0].close()
        code = await owner.process.wait()
        found.deaths += owner.counted + int(ending not in ("", SUPERVISOR) and code == -signal.SIGKILL)
        _, alive = await asyncio.to_thread(psutil.wait_procs, below, _FOLLOW)
        found.violations += [f"{process.name()} outlived the {ending}" for process in alive]
        if owner.says:
            found.says.append(owner.says.replace(str(folder), "FOLDER"))
        elif not ending or (ending == SUPERVISOR and not owner.done):
            found.violations.append("it ended without a sentence")
        # When it could not even start: what it says is what is to be done.
        resume = bool(ending) or "without resume" not in owner.says
        found.resumed += int(resume)
        if found.resumed > 2 * len(deaths) + 5:
            found.violations.append("it never got done")
            return found


async def judge(owner: Owner, found: Outcome, expected: Any) -> None:
    """Ask the judge about the work that is done; its verdict goes into `found`."""
    judging = await python(JUDGES[found.desk], owner.connection)
    out, _ = await judging.communicate(json.dumps({**owner.done, "expected": expected}).encode() + b"\n")
    verdict = json.loads(out)
    found.violations += verdict["violations"]
    found.raw, found.outcome = verdict["raw"], verdict.get("outcome", {})


async def undisturbed(desk: str, folder: Path, *options: str) -> Outcome:
    """The same work without a death."""
    found = await live(desk, folder, [], 0, None, *options)
    if found.violations:
        raise RuntimeError(f"{desk} without a death: {'; '.join(found.violations)}")
    return found
