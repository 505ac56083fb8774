"""python -m bench.crash_stack [--kills N] [--seed S]: SIGKILL the stack at random under load, again and again.

Two publishers with views behind them, key-value writes, a lease with a fence, forks and a consumer group with
two members work without a pause; after every restart what they were told is compared with what is there
(tests/stack/crashing.py says what must hold). Writes crash.md beside this file; exit code 1 at the first lie.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from bench import ending
from bench.measure import percentile
from tests.stack.crashing import Crashes

REBUILD_EVERY = 5
FRESH_EVERY = 100  # kills after which a new folder is begun, so that checking everything stays quick


async def crash(kills: int, seed: int) -> tuple[list[Crashes], str]:
    """(one Crashes per folder, what went wrong or nothing)."""
    done: list[Crashes] = []
    left, first = kills, seed
    while left:
        with tempfile.TemporaryDirectory(prefix="crash-") as folder:
            crashes = Crashes(Path(folder), first)
            done.append(crashes)
            try:
                async with crashes:
                    for number in range(1, min(left, FRESH_EVERY) + 1):
                        await crashes.once(rebuild=not number % REBUILD_EVERY)
                        print(f"{sum(c.kills for c in done)}/{kills}", end="\r", flush=True)
            except AssertionError as lie:
                return done, f"seed {first}, kill {crashes.kills}: {lie}"
        left -= crashes.kills
        first += 1
    return done, ""


def report(done: list[Crashes], lie: str, seed: int, seconds: float) -> str:
    """The result file."""
    kills = sum(c.kills for c in done)
    recoveries = [second for c in done for second in c.recoveries]
    rows = [
        ("SIGKILLs under load", kills),
        ("answers clients got and relied on", sum(c.place.answers for c in done)),
        ("requests a kill left unanswered, sent again after the restart", sum(c.place.resent for c in done)),
        ("records acknowledged and found", sum(len(p.log) for c in done for p in c.publishers)),
        ("fenced writes, each applied once", sum(c.lease.effects for c in done)),
        ("leases granted, tokens without a gap", sum(c.lease.fence for c in done)),
        ("forks opened", sum(c.forks.made for c in done)),
        ("view rows compared with a rebuild from record 0 (last time)", sum(c.rows_rebuilt for c in done)),
        ("from the start of a killed stack to accepting, median", f"{statistics.median(recoveries):.2f} s"),
        ("the same, 95th percentile", f"{percentile(recoveries, 0.95):.2f} s"),
        ("lost, applied twice, gaps, views that differ, leases lost", lie or 0),
    ]
    return "\n".join(
        [
            "# The embedded stack under SIGKILL",
            "",
            f"Written by `python -m bench.crash_stack --kills {kills} --seed {seed}`, "
            f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}, {seconds / 60:.0f} min.",
            "After every restart each client's memory is compared with the log, the offsets, the keys and their",
            f"versions, the lease, the forks and the group; every {REBUILD_EVERY} kills each view with its rebuild.",
            "",
            "| what | |",
            "|---|---:|",
            *(
                f"| {what} | {count:,} |" if isinstance(count, int) else f"| {what} | {count} |"
                for what, count in rows
            ),
            "",
        ]
    )


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.perf_counter()
    done, lie = await crash(options.kills, options.seed)
    text = report(done, lie, options.seed, time.perf_counter() - started)
    Path(__file__).with_name("crash.md").write_text(text)
    print(text)
    return 1 if lie else 0


if __name__ == "__main__":
    ending.run(main)
