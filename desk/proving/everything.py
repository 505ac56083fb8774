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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from desk.proving import sweep
from desk.proving.lives import BIRTH, GROUP, KERNEL, SIMULATOR, STACK, SUPERVISOR, Outcome, live, undisturbed
from desk.proving.plays import DELIVERY, SUPPORT
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


@dataclass(frozen=True)
class Job:
    """One part of it on one desk: who dies, in this order, or for how many seconds the monkey is loose."""

    part: str
    desk: str
    dying: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """What came of one run of a job. seconds: how long it took; says: the sentences a person got; raw, calm: how often
    each thing happened, and how often when nobody dies; whose: whom the monkey took how often.
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


class Kept:
    """The rows, in the file beside the report: what has been run stays, also when the rest is run another day."""

    def __init__(self, report: Path) -> None:
        self._report, self._file = report, report.with_suffix(".json")
        text = self._file.read_text(encoding="utf-8") if self._file.exists() else "[]"
        self.rows = [Row(**row) for row in json.loads(text)]

    def of(self, job: Job) -> list[Row]:
        """What there is of a job."""
        return [row for row in self.rows if (row.part, row.desk) == (job.part, job.desk)]

    def forget(self, job: Job) -> None:
        """It is run anew."""
        self.rows = [row for row in self.rows if row not in self.of(job)]

    def add(self, row: Row) -> None:
        """Keep a row, and write the report."""
        self.rows = sorted([*self.rows, row], key=lambda row: list(PARTS.values()).index(row.part))
        rows = ",\n".join(json.dumps(asdict(row)) for row in self.rows)
        self._file.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
        self._report.write_text(report(self.rows), encoding="utf-8")


def jobs(told: argparse.Namespace) -> Iterator[Job]:
    """What is to be done."""
    for part in told.part or PARTS:
        what = PARTS[part]
        if what == DAY:
            yield Job(DAY, DELIVERY, (STACK,) * told.stack, _LONG_DAY)
        elif what == CHAOS:
            options = ("--chaos", str(told.every))
            yield from (Job(CHAOS, desk, (), options, 60 * told.minutes) for desk in (SUPPORT, DELIVERY))
        else:
            desks = (DELIVERY,) if what == SIMULATOR else (SUPPORT, DELIVERY)
            yield from (Job(what, desk, (what,) * told.each) for desk in desks)


class Runs:
    """Runs jobs in folders of their own, two at a time, and keeps what comes of them."""

    def __init__(self, kept: Kept, folder: Path, seed: int) -> None:
        self._kept, self._folder, self._seed = kept, folder, seed
        self._calm: dict[Any, asyncio.Task[Outcome]] = {}

    async def do(self, job: Job) -> None:
        """Runs until everybody has died who is to, or with the monkey until its time is over."""
        for _ in range(_TRIES):
            left = job.dying[sum(row.deaths for row in self._kept.of(job)) :]
            if left:  # its work can be done before the last of them
                await self._run(job, left, self._seed + len(self._kept.of(job)), *job.options)
        while sum(row.seconds for row in self._kept.of(job)) < job.seconds:
            number = len(self._kept.of(job))
            await self._run(job, (), number, *job.options, "--seed", str(number))

    async def _run(self, job: Job, dying: Sequence[str], seed: int, *options: str) -> None:
        plain = await self._undisturbed(job.desk, () if job.seconds else job.options)
        place = self._folder / f"{job.desk}-{job.part}-{seed}".replace(" ", "-")
        start = time.monotonic()
        found = await live(job.desk, place, dying, seed, plain, *options)
        shutil.rmtree(place, ignore_errors=True)
        seconds = round(time.monotonic() - start, 1)
        said = (found.says, found.violations, found.raw, plain.raw, found.whose)
        self._kept.add(Row(job.part, job.desk, found.deaths, found.resumed, seconds, *said))
        told = "; ".join(found.violations) or "no violation"
        print(f"{job.desk}, {job.part}: {found.deaths} deaths, {found.resumed} resumed; {told}", flush=True)

    async def _undisturbed(self, desk: str, options: tuple[str, ...]) -> Outcome:
        """Once for everybody who asks."""
        key = (desk, options)
        if key not in self._calm:
            place = self._folder / f"calm-{desk}-{len(options)}"
            self._calm[key] = asyncio.create_task(undisturbed(desk, place, *options))
        return await self._calm[key]


def table(rows: Sequence[Row]) -> str:
    """A line for each desk and kind of death: runs, deaths, resumptions, violations, what was repeated raw."""
    lines = [
        "| desk | killed | runs | minutes | deaths | resumed | violations | repeated, raw |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
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
        died = f"{deaths}; of {whose.total()} it is known whose: {taken}" if taken else deaths
        lines.append(
            f"| {desk} | {part} | {len(own)} | {minutes:.1f} | {died} | {resumed} | {broken} | {repeated} |"
        )
    return "\n".join(lines)


def report(rows: Sequence[Row]) -> str:
    """bench/everything.md."""
    says = sorted({sentence for row in rows for sentence in row.says})
    broken = [f"- {row.desk}, {row.part}: {sentence}" for row in rows for sentence in row.violations]
    parts = [
        "# Everything else killed",
        "`python -m desk.proving.everything`, or one part of it with `--part`. Support: a ticket of each scenario. "
        "Delivery: a day with its five incidents, two vans (the long day: eight vans, twelve orders). SIGKILL each "
        "time, at seeded places of the log, or by the monkey; where the desk ended with it, it was started again with "
        "`resume=True`. What came of it is judged from the log, key-value state, views and the bank's file, and must "
        "be what the same work comes to undisturbed. An event that is on the log twice under one id counts as "
        'repeated; "resumes", "replays", "resumed" are what is meant to happen.',
        table(rows),
        "What a person was told meanwhile:\n\n" + ("\n".join(f"- {s}" for s in says) or "- nothing"),
    ]
    if broken:
        parts.append("Violations:\n\n" + "\n".join(broken))
    deaths, violations = sum(row.deaths for row in rows), sum(len(row.violations) for row in rows)
    return "\n\n".join([*parts, f"deaths: {deaths}, violations: {violations}"]) + "\n"


def spared(rows: Sequence[Row]) -> bool:
    """Whether the monkey never took the stack on some desk, as far as it is known whom it took."""
    known = [row for row in rows if row.whose]
    return any(
        not any(STACK in row.whose for row in known if row.desk == desk)
        for desk in {row.desk for row in known}
    )


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
    kept = Kept(told.out)
    wanted = list(jobs(told))
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
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(report(kept.rows))
    return int(any(row.violations for row in kept.rows) or spared(kept.rows))


if __name__ == "__main__":
    sys.exit(main())
