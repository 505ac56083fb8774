"""`python -m bench.rivals prepare | run | report`: make the rivals' environments, measure all, write the report again.

Notebook 04 draws what `rivals.json` holds: run it again after a run.
"""

import argparse
import asyncio
import os
import platform
import sys
import time
from collections import defaultdict
from pathlib import Path

from bench import ending
from bench.recovery_self import scheduling
from bench.rivals import environments, lines, measure, report, results
from bench.rivals.counting import Chaos, Recovery
from bench.rivals.outside import HOLD
from bench.rivals.systems.laser_desk import LaserDesk
from bench.rivals.systems.rivals import RIVALS
from desk.control import DeskError

HERE = Path(__file__).parents[1]
SYSTEMS = (LaserDesk, *RIVALS)
REPETITIONS, CHAOS_RUNS = 10, 10


async def measured(repetitions: int, chaos_runs: int, seed: int) -> dict[str, results.System]:
    """Everything, the systems taking turns: who begins moves on by one each time."""
    kills: dict[str, list[tuple[Recovery, Recovery]]] = defaultdict(list)
    chaos: dict[str, list[Chaos]] = defaultdict(list)
    for turn in range(max(repetitions, chaos_runs)):
        for make in (*SYSTEMS[turn % len(SYSTEMS) :], *SYSTEMS[: turn % len(SYSTEMS)]):
            if turn < repetitions:
                a, b = await measure.one_kill(make)
                kills[make.name].append((a, b))
                print(f"{turn + 1:2} {make.name:10} first line A {a.first}, B {b.first}", flush=True)
            if turn < chaos_runs:
                one = await measure.under_chaos(make, seed + turn)
                chaos[make.name].append(one)
                print(f"{turn + 1:2} {make.name:10} chaos: all closed after {one.after}", flush=True)
    return {
        make.name: results.System(
            a=tuple(a for a, _ in kills[make.name]),
            b=tuple(b for _, b in kills[make.name]),
            chaos=tuple(chaos[make.name]),
            lines=lines.count(lines.TICKETS[make.name]),
        )
        for make in SYSTEMS
    }


def run(repetitions: int, chaos_runs: int, seed: int, folder: Path) -> None:
    """Measure, and write rivals.md and rivals.json."""
    before, began = os.getloadavg()[0], time.monotonic()
    systems = asyncio.run(measured(repetitions, chaos_runs, seed))
    about = {
        "repetitions": repetitions,
        "chaos runs": chaos_runs,
        "seed": seed,
        "hold": HOLD,
        "into hold": measure.INTO_HOLD,
        "tickets": measure.TICKETS,
        "every": measure.EVERY,
        "versions": environments.versions(),
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "took": time.monotonic() - began,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "scheduling": scheduling(),
        "load before": f"{before:.1f}",
        "load after": f"{os.getloadavg()[0]:.1f}",
    }
    results.write(folder / "rivals.json", about, systems)
    write(folder)


def write(folder: Path) -> None:
    """The report of the run that `rivals.json` holds."""
    about, systems = results.read(folder / "rivals.json")
    text = report.as_markdown(about, systems)
    (folder / "rivals.md").write_text(text)
    print(text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rivals", description=__doc__)
    parser.add_argument("do", choices=("prepare", "run", "report"))
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--chaos", type=int, default=CHAOS_RUNS, help="runs under chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="write here instead of bench/")
    arguments = parser.parse_args()
    folder = arguments.out or HERE
    try:
        if arguments.do == "prepare":
            environments.prepare()
        elif arguments.do == "run":
            run(arguments.repetitions, arguments.chaos, arguments.seed, folder)
        else:
            write(folder)
    except (environments.RivalsError, DeskError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    ending.run(main)
