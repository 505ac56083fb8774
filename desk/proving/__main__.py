"""`python -m desk.proving [--full]`: kill the support desk's agents at their writes, and prove nothing was broken.

Writes bench/prove.md. Exit 0 only when every kill fired and no invariant was violated.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from desk.proving import report, sweep
from desk.proving.plays import PLAYS
from desk.proving.rows import Rows
from desk.proving.stage import Row, Stage

BENCH = Path(__file__).parent.parent.parent / "bench" / "prove.md"
_SAMPLE = 150
_COMPARED = 12


async def prove(full: bool, size: int, seed: int, rows: Rows) -> tuple[list[Row], str]:
    """Sweep. Returns the rows, and the report's text."""
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="prove-"))
    try:
        async with Stage(folder) as stage:
            cases, undisturbed = await sweep.points(stage)
            chosen = cases if full else sweep.sample(cases, size, seed)
            print(f"{len(cases)} points, {len(chosen)} of them to try", flush=True)
            chosen = [*chosen, *await sweep.comparisons(stage, _COMPARED, seed)]
            await sweep.spread([c for c in chosen if c.name not in rows.done], lambda c: _row(stage, c, rows))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    done = [rows.done[case.name] for case in chosen]
    lines = report.table(done, undisturbed)
    print(report.plain(lines))
    about = (
        f"{'All' if full else f'A sample (seed {seed})'} of the {len(cases)} points in {len(PLAYS)} plays, "
        f"{time.monotonic() - start:.0f} s with {sweep.WORKERS} workers on {os.cpu_count()} cores."
    )
    return done, report.markdown(lines, done, about)


async def _row(stage: Stage, case: sweep.Case, rows: Rows) -> Row:
    row = await sweep.perform(stage, case)
    rows.add(case.name, row)
    if row.violations and not row.variant:
        print(f"{case.name}: {'; '.join(row.violations)}", flush=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m desk.proving", description=__doc__)
    parser.add_argument("--full", action="store_true", default=os.environ.get("PROVE") == "full")
    parser.add_argument("--size", type=int, default=_SAMPLE, help="points of a sample (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="which sample (default %(default)s)")
    parser.add_argument("--rows", type=Path, help="keep rows in this file, and go on where it ends")
    parser.add_argument(
        "--out", type=Path, default=BENCH, help="where the report goes (default bench/prove.md)"
    )
    told = parser.parse_args()
    done, text = asyncio.run(prove(told.full, told.size, told.seed, Rows(told.rows)))
    told.out.write_text(text, encoding="utf-8")
    print(report.last_line(done))
    return 0 if all(row.killed and not row.violations for row in done if not row.variant) else 1


if __name__ == "__main__":
    sys.exit(main())
