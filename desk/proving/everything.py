"""Kill everything else: the stack, the supervisor, the kernel, the whole process group, or all of it at random.

`python -m desk.proving.everything` writes bench/everything.md: a desk is owned by a program of its own, killed again
and again while it works, and resumed; it must go on where it was, or say in one sentence what must be done. What came
of it is judged as in `desk.proving`, by what the same work comes to undisturbed.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from desk.proving import sweep
from desk.proving.lives import BIRTH, GROUP, KERNEL, SIMULATOR, STACK, SUPERVISOR, Outcome, live, undisturbed
from desk.proving.plays import DELIVERY, SUPPORT
from desk.proving.rows import Tried, refusal
from desk.proving.stage import cancelled_by_sigterm

BENCH = Path(__file__).parent.parent.parent / "bench" / "everything.md"
DAY, CHAOS = "stack under a long day", "anybody, the stack included"
PARTS = {
    "day": DAY, "stack": STACK, "supervisor": SUPERVISOR, "kernel": KERNEL, "group": GROUP, "birth": BIRTH,
    "simulator": SIMULATOR, "chaos": CHAOS,
}  # fmt: skip
"""What can be run alone, and what is killed in it."""
_TRIES = 4
_LONG_DAY = ("--vans", "8", "--orders", "12")
_LONG = {SUPPORT: ("--rounds", "10"), DELIVERY: _LONG_DAY}
"""So that the monkey is loose for most of a run, and not while Pythons start."""


@dataclass(frozen=True)
class Job:
    """One part of it on one desk: who dies, in this order, or for how many seconds the monkey is loose, killing one
    every so many. options: of the work.
    """

    part: str
    desk: str
    dying: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    seconds: float = 0.0
    every: float = 0.0


@dataclass(frozen=True)
class Row:
    """What came of one run of a job. seconds: how long it took, with starting, ending and judging; says: the sentences
    a person got; raw, calm: how often each thing happened, and how often when nobody dies; whose: whom the monkey took
    how often; loose: for how many seconds it was loose while there was work; code: what was tried.
    """

    part: str
    desk: str
    deaths: int
    resumed: int
    seconds: float
    says: Sequence[str] = ()
    violations: Sequence[str] = ()
    raw: Mapping[str, int] = field(default_factory=dict)
    calm: Mapping[str, int] = field(default_factory=dict)
    whose: Mapping[str, int] = field(default_factory=dict)
    loose: float = 0.0
    code: str = ""


class Kept:
    """The rows, in the file beside the report: what has been run stays, also when the rest is run another day, unless
    the desk or its judge has changed since. wanted: what is to be there in the end.
    """

    def __init__(self, report: Path, wanted: Sequence[Job] = ()) -> None:
        self._report, self._file, self._wanted = report, report.with_suffix(".json"), wanted
        self._tried = Tried()
        text = self._file.read_text(encoding="utf-8") if self._file.exists() else "[]"
        rows = [Row(**row) for row in json.loads(text)]
        self.rows = [row for row in rows if row.code == self._tried.codes[row.desk]]

    def of(self, job: Job) -> list[Row]:
        """What there is of a job."""
        return [row for row in self.rows if (row.part, row.desk) == (job.part, job.desk)]

    def forget(self, job: Job) -> None:
        """It is run anew."""
        self.rows = [row for row in self.rows if row not in self.of(job)]

    def add(self, row: Row) -> None:
        """Keep a row, and write the report. Raises CodeChanged."""
        row = replace(row, code=self._tried.still(row.desk))
        self.rows = sorted([*self.rows, row], key=lambda row: list(PARTS.values()).index(row.part))
        rows = ",\n".join(json.dumps(asdict(row)) for row in self.rows)
        self._file.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
        self._report.write_text(report(self.rows, self._wanted), encoding="utf-8")


def jobs(told: argparse.Namespace) -> Iterator[Job]:
    """What is to be done."""
    for part in told.part or PARTS:
        what = PARTS[part]
        if what == DAY:
            yield Job(DAY, DELIVERY, (STACK,) * told.stack, _LONG_DAY)
        elif what == CHAOS:
            yield from (
                Job(CHAOS, d, (), options, 60 * told.minutes, told.every) for d, options in _LONG.items()
            )
        else:
            desks = (DELIVERY,) if what == SIMULATOR else (SUPPORT, DELIVERY)
            yield from (Job(what, desk, (what,) * told.each) for desk in desks)


class Runs:
    """Runs jobs in folders of their own, two at a time, and keeps what comes of them."""

    def __init__(self, kept: Kept, folder: Path, seed: int) -> None:
        self._kept, self._folder, self._seed = kept, folder, seed
        self._calm: dict[Any, asyncio.Task[Outcome]] = {}

    async def do(self, job: Job) -> None:
        """Runs until everybody has died who is to, or with the monkey until it has been loose for its time."""
        for _ in range(_TRIES):
            left = job.dying[sum(row.deaths for row in self._kept.of(job)) :]
            if left:  # its work can be done before the last of them
                await self._run(job, left, self._seed + len(self._kept.of(job)))
        fruitless = 0
        while _loose(self._kept.of(job)) < job.seconds and fruitless < _TRIES:
            number, before = len(self._kept.of(job)), _loose(self._kept.of(job))
            await self._run(job, (), number, "--chaos", str(job.every), "--seed", str(number))
            fruitless += _loose(self._kept.of(job)) == before

    async def _run(self, job: Job, dying: Sequence[str], seed: int, *more: str) -> None:
        plain = await self._undisturbed(job.desk, job.options)
        place = self._folder / f"{job.desk}-{job.part}-{seed}".replace(" ", "-")
        start = time.monotonic()
        found = await live(job.desk, place, dying, seed, plain, *job.options, *more)
        if not found.violations:
            shutil.rmtree(place, ignore_errors=True)
        seconds = round(time.monotonic() - start, 1)
        said = (found.says, found.violations, found.raw, plain.raw, found.whose, found.loose)
        self._kept.add(Row(job.part, job.desk, found.deaths, found.resumed, seconds, *said))
        told = "; ".join(found.violations) or "no violation"
        print(f"{job.desk}, {job.part}: {found.deaths} deaths, {found.resumed} resumed; {told}", flush=True)

    async def _undisturbed(self, desk: str, options: tuple[str, ...]) -> Outcome:
        """Once for everybody who asks."""
        key = (desk, options)
        if key not in self._calm:
            place = self._folder / "-".join(["calm", desk, *options])
            self._calm[key] = asyncio.create_task(undisturbed(desk, place, *options))
        return await self._calm[key]


def table(rows: Sequence[Row]) -> str:
    """A line for each desk and kind of death: runs, deaths, resumptions, violations, what was repeated raw."""
    lines = [
        "| desk | killed | runs | minutes | of these the monkey loose | deaths | resumed | violations | repeated, raw |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for desk, part in dict.fromkeys((row.desk, row.part) for row in rows):
        own = [row for row in rows if (row.desk, row.part) == (desk, part)]
        more = {
            thing: sum(max(0, row.raw.get(thing, 0) - row.calm.get(thing, 0)) for row in own)
            for thing in own[0].calm
        }
        repeated = ", ".join(f"{number} {thing}" for thing, number in more.items() if number) or "nothing"
        minutes = sum(row.seconds for row in own) / 60
        deaths, resumed = sum(row.deaths for row in own), sum(row.resumed for row in own)
        broken = sum(len(row.violations) for row in own)
        whose = Counter[str]()
        for row in own:
            whose.update(row.whose)
        taken = ", ".join(f"{name} {number}" for name, number in sorted(whose.items()))
        died = f"{deaths}: {taken}" if taken else deaths
        loose = f"{_loose(own) / 60:.1f}" if _loose(own) else ""
        lines.append(
            f"| {desk} | {part} | {len(own)} | {minutes:.1f} | {loose} | {died} | {resumed} | {broken} | {repeated} |"
        )
    return "\n".join(lines)


def _loose(rows: Sequence[Row]) -> float:
    return sum(row.loose for row in rows)


def report(rows: Sequence[Row], wanted: Sequence[Job] = ()) -> str:
    """bench/everything.md."""
    says = sorted({sentence for row in rows for sentence in row.says})
    broken = [f"- {row.desk}, {row.part}: {sentence}" for row in rows for sentence in row.violations]
    parts = [
        "# Everything else killed",
        "`python -m desk.proving.everything`, or one part of it with `--part`. Support: a ticket of each scenario "
        "(under the monkey ten of each, in ten rounds). Delivery: a day with its five incidents, two vans (the long "
        "day, also the monkey's: eight vans, twelve orders). SIGKILL each time, at seeded places of the log, or by the "
        "monkey; where the desk ended with it, it was started again with `resume=True`. A death is counted when the "
        "process was alive and the supervisor, or the parent, has seen it die. Minutes are of whole runs, with "
        "starting, ending and judging; the monkey is loose from when it is let loose to when the work is done. What "
        "came of it is judged from the log, key-value state, views and the bank's file, and must be what the same work "
        "comes to undisturbed; nor may the stack have died when nobody killed it. An event that is on the log "
        'twice under one id counts as repeated; "resumes", "replays", "resumed" are what is meant to happen.',
        table(rows),
        "What a person was told meanwhile:\n\n" + ("\n".join(f"- {s}" for s in says) or "- nothing"),
    ]
    if broken:
        parts.append("Violations:\n\n" + "\n".join(broken))
    if missing := list(undone(rows, wanted)):
        parts.append("Not done:\n\n" + "\n".join(f"- {sentence}" for sentence in missing))
    deaths, violations = sum(row.deaths for row in rows), sum(len(row.violations) for row in rows)
    return "\n\n".join([*parts, f"deaths: {deaths}, violations: {violations}"]) + "\n"


def undone(rows: Sequence[Row], wanted: Sequence[Job]) -> Iterator[str]:
    """What was to be done and was not: too few deaths, too little time with the monkey, or whom it never took."""
    for job in wanted:
        own = [row for row in rows if (row.part, row.desk) == (job.part, job.desk)]
        name = f"{job.desk}, {job.part}"
        if (deaths := sum(row.deaths for row in own)) < len(job.dying):
            yield f"{name}: {deaths} deaths of {len(job.dying)}"
        if _loose(own) < job.seconds:
            yield f"{name}: {_loose(own) / 60:.1f} minutes of {job.seconds / 60:g}"
        if job.seconds and not any(row.whose for row in own):
            yield f"{name}: the monkey took nobody"
        elif job.seconds and not any(STACK in row.whose for row in own):
            yield f"{name}: the monkey never took the stack"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; `arguments` are those of the command line by default."""
    parser = argparse.ArgumentParser(prog="python -m desk.proving.everything", description=__doc__)
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only this part (default all)")
    parser.add_argument("--resume", action="store_true", help="leave what the report has, do the rest")
    parser.add_argument(
        "--stack", type=int, default=50, help="deaths of the stack under the long day (default 50)"
    )
    parser.add_argument("--each", type=int, default=5, help="deaths of each of the others (default 5)")
    parser.add_argument("--minutes", type=float, default=10.0, help="of chaos on both desks (default 10)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills (default 2)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=BENCH)
    told = parser.parse_args(arguments)
    wanted = list(jobs(told))
    kept = Kept(told.out, wanted)
    if not told.resume:
        for job in wanted:
            kept.forget(job)
    folder = Path(tempfile.mkdtemp(prefix="everything-"))

    async def all_of_it() -> None:
        cancelled_by_sigterm()
        runs = Runs(kept, folder, told.seed)
        await sweep.spread([job for job in wanted if not job.seconds], runs.do)
        await sweep.spread([job for job in wanted if job.seconds], runs.do)

    try:
        asyncio.run(all_of_it())
    except ExceptionGroup as errors:
        print(refusal(errors))
        return 1
    finally:
        if not any(row.violations for row in kept.rows):
            shutil.rmtree(folder, ignore_errors=True)
    print(report(kept.rows, wanted))
    if any(folder.glob("*")):
        print(f"What is left of the runs with a violation: {folder}")
    return int(any(row.violations for row in kept.rows) or any(undone(kept.rows, wanted)))


if __name__ == "__main__":
    sys.exit(main())
