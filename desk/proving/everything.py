"""Kill everything else: the stack, the supervisor, the kernel, the whole process group, or all of it at random.

`python -m desk.proving.everything` writes bench/everything.md: a desk is owned by a program of its own, killed again
and again while it works, and resumed; it must go on where it was, or say in one sentence what must be done. What came
of it is judged as in `desk.proving`, by what the same work comes to undisturbed.
"""

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from desk.proving.plays import DELIVERY, SUPPORT
from desk.proving.stage import JUDGES, python

BENCH = Path(__file__).parent.parent.parent / "bench" / "everything.md"
STACK, SUPERVISOR, KERNEL, GROUP, SIMULATOR = "stack", "supervisor", "kernel", "process group", "simulator"
BIRTH = "process group while it starts"
_YOUNG = (0.05, 2.0)  # seconds after which that happens
_ENDING = (SUPERVISOR, KERNEL, GROUP)
"""After which the desk has to be started again."""
_FOLLOW = 20.0  # seconds for everything below to follow its owner
_SPREAD = 1.5  # the longest way between two deaths, in events: this many even shares of the whole
_LONG_DAY = ("--vans", "8", "--orders", "12")


@dataclass
class Outcome:
    """What came of one desk's work. says: the sentences a person got; raw: how often each thing happened."""

    desk: str
    what: str
    events: int = 0
    deaths: int = 0
    resumed: int = 0
    says: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    raw: dict[str, int] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=dict)


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
        line = await self.process.stdout.readline()
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
            whom, ending = left.pop(0), True
            below = psutil.Process(owner.process.pid).children(recursive=True)
            owner.kill(GROUP)
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
            found.deaths += sum(owner.deaths.values()) if "--chaos" in options else 0
            found.events = owner.events
            await _judge(owner, found, calm.outcome if calm else None)
            owner.process.stdin.close()
            await owner.process.wait()
            return found
        if owner.done:  # it was killed when it had just got done: resumed, its stack can be asked
            owner.process.stdin.close()
        await owner.process.wait()
        _, alive = await asyncio.to_thread(psutil.wait_procs, below, _FOLLOW)
        found.violations += [f"{process.name()} outlived the {whom}" for process in alive]
        if owner.says:
            found.says.append(owner.says)
        elif not ending:
            found.violations.append("it ended without a sentence")
        # When it could not even start: what it says is what is to be done.
        resume = ending or "without resume" not in owner.says
        found.resumed += int(resume)
        if found.resumed > 2 * len(deaths) + 5:
            found.violations.append("it never got done")
            return found


async def _judge(owner: Owner, found: Outcome, expected: Any) -> None:
    judge = await python(JUDGES[found.desk], owner.connection)
    run = {**owner.done, **({"expected": expected} if found.desk == DELIVERY else {})}
    out, _ = await judge.communicate(json.dumps(run).encode() + b"\n")
    verdict = json.loads(out)
    found.violations += verdict["violations"]
    found.raw, found.outcome = verdict["raw"], verdict.get("outcome", {})


async def undisturbed(desk: str, folder: Path, *options: str) -> Outcome:
    """The same work without a death."""
    found = await live(desk, folder, [], 0, None, *options)
    if found.violations:
        raise RuntimeError(f"{desk} without a death: {'; '.join(found.violations)}")
    return found


async def deaths(told: argparse.Namespace, folder: Path) -> list[tuple[Outcome, dict[str, int]]]:
    """The stack so many times under a running day, and each of the others, on both desks."""
    rows = []
    longest = await undisturbed(DELIVERY, folder / "long", *_LONG_DAY)
    plain = {desk: await undisturbed(desk, folder / f"plain-{desk}") for desk in (SUPPORT, DELIVERY)}
    found = await live(DELIVERY, folder / "stack", [STACK] * told.stack, told.seed, longest, *_LONG_DAY)
    rows.append((found, longest.raw))
    _tell(found)
    for whom in (STACK, SUPERVISOR, KERNEL, GROUP, BIRTH, SIMULATOR):
        for desk in (SUPPORT, DELIVERY):
            if whom == SIMULATOR and desk == SUPPORT:
                continue
            name = f"{desk}-{whom}".replace(" ", "-")
            found = await live(desk, folder / name, [whom] * told.each, told.seed, plain[desk])
            rows.append((found, plain[desk].raw))
            _tell(found)
    return rows


async def chaos(told: argparse.Namespace, folder: Path) -> list[tuple[Outcome, dict[str, int]]]:
    """Both desks at once, the monkey killing anybody, the stack included, until the minutes are over."""
    end = time.monotonic() + 60 * told.minutes

    async def rounds(desk: str) -> list[tuple[Outcome, dict[str, int]]]:
        plain = await undisturbed(desk, folder / f"calm-{desk}")
        rows = []
        for number in range(10**6):
            if time.monotonic() > end:
                return rows
            place, every = folder / f"{desk}-{number}", ("--chaos", str(told.every), "--seed", str(number))
            found = await live(desk, place, [], number, plain, *every)
            found.what = f"chaos, the stack included, about every {told.every:g} s"
            _tell(found)
            rows.append((found, plain.raw))
            shutil.rmtree(place, ignore_errors=True)
        return rows

    both = await asyncio.gather(rounds(SUPPORT), rounds(DELIVERY))
    return [row for rows in both for row in rows]


def _tell(found: Outcome) -> None:
    print(f"{found.desk}, {found.what}: {found.deaths} deaths, {found.resumed} resumed; "
          f"{'; '.join(found.violations) or 'no violation'}", flush=True)  # fmt: skip


def table(rows: Sequence[tuple[Outcome, dict[str, int]]]) -> str:
    """A line for each desk and kind of death: runs, deaths, resumptions, violations, what was repeated raw."""
    lines = [
        "| desk | killed | runs | deaths | resumed | violations | repeated, raw |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for desk, what in dict.fromkeys((found.desk, found.what) for found, _ in rows):
        own = [(found, calm) for found, calm in rows if (found.desk, found.what) == (desk, what)]
        more = {
            thing: sum(max(0, found.raw.get(thing, 0) - calm.get(thing, 0)) for found, calm in own)
            for thing in own[0][1]
        }
        repeated = ", ".join(f"{number} {thing}" for thing, number in more.items() if number) or "nothing"
        deaths, resumed = sum(f.deaths for f, _ in own), sum(f.resumed for f, _ in own)
        broken = sum(len(f.violations) for f, _ in own)
        lines.append(f"| {desk} | {what} | {len(own)} | {deaths} | {resumed} | {broken} | {repeated} |")
    return "\n".join(lines)


def report(rows: Sequence[tuple[Outcome, dict[str, int]]], told: argparse.Namespace) -> str:
    """bench/everything.md."""
    says = sorted({sentence for found, _ in rows for sentence in found.says})
    broken = [f"- {f.desk}, {f.what}: {sentence}" for f, _ in rows for sentence in f.violations]
    parts = [
        "# Everything else killed",
        f"`python -m desk.proving.everything --stack {told.stack} --each {told.each} --minutes {told.minutes:g}` "
        f"(seed {told.seed}). Support: a ticket of each scenario. Delivery: a day with its five incidents, two vans "
        "(the first line: eight vans, twelve orders). SIGKILL each time, at seeded places of the log; where the desk "
        "ended with it, it was started again with `resume=True`. What came of it is judged from the log, key-value "
        "state, views and the bank's file, and must be what the same work comes to undisturbed. An event that is on "
        'the log twice under one id counts as repeated; "resumes", "replays", "resumed" are what is meant to happen.',
        table(rows),
        "What a person was told meanwhile:\n\n" + ("\n".join(f"- {s}" for s in says) or "- nothing"),
    ]
    if broken:
        parts.append("Violations:\n\n" + "\n".join(broken))
    deaths, violations = sum(f.deaths for f, _ in rows), sum(len(f.violations) for f, _ in rows)
    return "\n\n".join([*parts, f"deaths: {deaths}, violations: {violations}"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; `arguments` are those of the command line by default."""
    parser = argparse.ArgumentParser(prog="python -m desk.proving.everything", description=__doc__)
    parser.add_argument(
        "--stack", type=int, default=50, help="deaths of the stack under one day (default 50)"
    )
    parser.add_argument("--each", type=int, default=5, help="deaths of each of the others (default 5)")
    parser.add_argument("--minutes", type=float, default=10.0, help="of chaos on both desks (default 10)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills (default 2)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=BENCH)
    told = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="everything-"))

    async def all_of_it() -> list[tuple[Outcome, dict[str, int]]]:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
        rows = await deaths(told, folder) if told.stack or told.each else []
        return [*rows, *(await chaos(told, folder) if told.minutes else [])]

    try:
        rows = asyncio.run(all_of_it())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = report(rows, told)
    told.out.write_text(text, encoding="utf-8")
    print(text)
    return int(any(found.violations for found, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
