"""`python -m desk.proving [--full]`: kill both desks' processes at their writes, and prove nothing was broken.

Writes its section of bench/prove.md; a full sweep then kills everything else, for the bench/everything.md beside it.
Exit 0 only when no invariant was violated and every kill fired, except where a write is not made each time: which of
several processes makes a topic, and how often a cursor is saved, are timing.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from desk.proving import everything, report, sweep
from desk.proving.cases import ANSWERED, HUNG, ONCE, OVERTAKEN, STOPPED, TWICE, WAYS, Case, Row
from desk.proving.plays import DELIVERY, SUPPORT
from desk.proving.rows import Rows, refusal
from desk.proving.stage import Stage, cancelled_by_sigterm
from desk.proving.sweep import Points
from desk.wording import counted

BENCH = Path(__file__).parent.parent.parent / "bench" / "prove.md"
KEPT = Path(".desk") / "prove.jsonl"
_STAGE = 60
"""Runs on one stack: a reader of the change feed goes through all of it, other runs' part too."""


@dataclass(frozen=True)
class Size:
    """How many runs of each way."""

    once: int
    twice: int
    answered: int
    stopped: int
    hung: int
    overtaken: int
    compared: int = 0


SAMPLE = {SUPPORT: Size(70, 6, 2, 4, 2, 2, 3), DELIVERY: Size(36, 4, 2, 4, 2, 2)}
FULL = {SUPPORT: Size(10**6, 60, 10**6, 40, 20, 10**6, 12), DELIVERY: Size(10**6, 60, 10**6, 40, 20, 10**6)}


async def prove(desk: str, size: Size, seed: int, rows: Rows, workers: int) -> tuple[list[Row], Points, int]:
    """Sweep one desk. Returns the rows, what runs without a kill tell, and how many points there are."""
    async with _stage() as stage:
        known = await sweep.points(stage, desk)
        expected = stage.expected
        compared = await sweep.comparisons(stage, size.compared, seed) if size.compared else []
    drawn = {
        ANSWERED: (sweep.sample(known.asking, size.answered, seed), size.answered),
        OVERTAKEN: (sweep.sample(known.meeting, size.overtaken, seed), size.overtaken),
        TWICE: (sweep.twice(known.cases, size.twice, seed), size.twice),
        STOPPED: (sweep.stopped(known.working, STOPPED, size.stopped, seed), size.stopped),
        HUNG: (sweep.stopped(known.working, HUNG, size.hung, seed + 1), size.hung),
        ONCE: (sweep.sample(known.cases, len(known.cases), seed), size.once),
    }
    left = [case for way, (cases, wanted) in drawn.items() for case in still(desk, way, cases, wanted, rows)]
    left += [case for case in compared if case.name not in rows.done]
    print(f"{desk}: {len(known.cases)} points, {len(left)} runs left", flush=True)
    for first in range(0, len(left), _STAGE):
        some = left[first : first + _STAGE]
        async with _stage() as stage:
            stage.expected = expected
            await sweep.spread(some, lambda case, stage=stage: _row(stage, case, rows), workers)
    done = {name: row for name, row in rows.done.items() if row.desk == desk}
    names = {case.name for case in known.cases} | {name for name, row in done.items() if row.way == ONCE}
    return list(done.values()), known, len(names)


def still(desk: str, way: str, drawn: Sequence[Case], wanted: int, rows: Rows) -> list[Case]:
    """The runs of a way that are left to do. A sweep that goes on may draw from other points: what a day writes is
    partly timing. So those that are done count, whatever was drawn.
    """
    done = sum((row.desk, row.way) == (desk, way) for row in rows.done.values())
    return [case for case in drawn if case.name not in rows.done][: max(0, wanted - done)]


@asynccontextmanager
async def _stage() -> AsyncIterator[Stage]:
    """A stage in a folder that goes with it, however it ends."""
    with tempfile.TemporaryDirectory(prefix="prove-", ignore_cleanup_errors=True) as folder:
        async with Stage(Path(folder)) as stage:
            yield stage


async def _row(stage: Stage, case: Case, rows: Rows) -> None:
    row = await sweep.perform(stage, case)
    rows.add(case.name, row)
    if row.violations and row.way in WAYS:
        print(f"{case.name}: {'; '.join(row.violations)}", flush=True)


async def both(told: argparse.Namespace, rows: Rows) -> tuple[list[Row], dict[str, str]]:
    """Sweep the desks that were asked for. Returns the rows, and the text of each section they are for."""
    cancelled_by_sigterm()
    everything: list[Row] = []
    tables: list[list[tuple[str, ...]]] = []
    abouts: list[str] = []
    sections: dict[str, str] = {}
    for desk in told.desk or (SUPPORT, DELIVERY):
        start = time.monotonic()
        size = (FULL if told.full else SAMPLE)[desk]
        size = replace(size, once=told.size or size.once)
        done, known, number = await prove(desk, size, told.seed, rows, told.workers)
        lines = report.table(desk, done, known.undisturbed)
        print(report.plain(lines), flush=True)
        seconds, scenarios = time.monotonic() - start, len(known.undisturbed)
        about = report.about(
            desk, done, number, scenarios, told.seed, seconds, told.workers, os.cpu_count() or 1
        )
        if told.full:
            sections[desk] = report.section(about, [lines], done)
        everything, tables, abouts = [*everything, *done], [*tables, lines], [*abouts, about]
    if not told.full:
        sections["sample"] = report.section("\n\n".join(abouts), tables, everything)
    return everything, sections


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m desk.proving", description=__doc__)
    parser.add_argument("--full", action="store_true", default=os.environ.get("PROVE") == "full")
    parser.add_argument("--desk", action="append", choices=(SUPPORT, DELIVERY), help="only this desk")
    parser.add_argument("--seed", type=int, default=7, help="which sample (default %(default)s)")
    parser.add_argument("--size", type=int, help="of each desk, how many points to try in runs with one kill")
    parser.add_argument(
        "--workers", type=int, default=sweep.WORKERS, help="runs at a time (default %(default)s)"
    )
    parser.add_argument(
        "--rows",
        type=Path,
        help=f"keep rows in this file, and go on where it ends (a full sweep: {KEPT}, until it is done)",
    )
    parser.add_argument(
        "--out", type=Path, default=BENCH, help="where the report goes (default bench/prove.md)"
    )
    told = parser.parse_args()
    rows = Rows(told.rows or (KEPT if told.full else None))
    broken = 0
    try:
        done, sections = asyncio.run(both(told, rows))
        old = told.out.read_text(encoding="utf-8") if told.out.exists() else ""
        told.out.write_text(report.merged(old, sections, report.last_line(done)), encoding="utf-8")
        if told.full and not told.desk:
            beside = told.out.with_name(everything.BENCH.name)
            broken = everything.main(["--seed", str(told.seed), "--out", str(beside)])
    except (asyncio.CancelledError, KeyboardInterrupt):
        print(
            f"Stopped after {counted(len(rows.done), 'run')}.{' The same command goes on from there.' * rows.are_kept}"
        )
        return 1
    except ExceptionGroup as errors:
        print(refusal(errors))
        return 1
    if not told.rows:
        rows.forget()
    print(report.last_line(done))
    if broken:
        print("Of everything else something is wrong or missing: its report is above.")
    return 0 if report.complete(done) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
