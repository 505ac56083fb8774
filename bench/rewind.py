"""Rewind measured: 200,000 records of a long day to frames, from two fresh cursors on the embedded stack.

`python -m bench.rewind` prints a row each, ending in `holds` or `misses`, and writes bench/rewind.md.
"""

import os
import statistics
import sys
import tempfile
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import laser_sdk as ls

from bench import ending
from desk.analysis.frames import Fold
from desk.analysis.rewind import rewind
from desk.delivery.layout import EVENTS, POSITIONS
from desk.runtime.connect import connect
from desk.supervisor.client import Supervisor

RECORDS, OF_EVENTS, VANS, MINUTES = 200_000, 6_000, 8, 240
AIM = 2.0  # seconds
RUNS = 5
_BATCH = 1_000
_FILE = Path(__file__).with_suffix(".md")


def positions(number: int) -> list[dict]:
    """So many reports of eight vans, spread over the day."""
    return [
        {"minute": n / number * MINUTES, "van": f"van-{n % VANS + 1}", "status": "driving", "metres": n / VANS,
         "lon": 144.95, "lat": -37.81, "at": "s-01", "stop": "s-02"} for n in range(number)
    ]  # fmt: skip


def events(number: int) -> list[dict]:
    """So many deliveries and steps."""
    return [
        {"id": f"{n:032x}", "at": n / 100, "kind": "delivered" if n % 2 else "step", "agent": "routing-1", "pid": 1,
         "minute": n / number * MINUTES, "van": f"van-{n % VANS + 1}", "stop": f"s-{n % 60:02}",
         "incident": f"d-{n}", "step": "replan", "state": "done", "text": "delivered"} for n in range(number)
    ]  # fmt: skip


async def fill(laser: ls.Laser, topic: str, records: list[dict]) -> None:
    """Write the records in batches to a topic of one partition."""
    await laser.topic(topic).ensure(1)
    for start in range(0, len(records), _BATCH):
        batch = laser.topic(topic).publish_batch()
        for record in records[start : start + _BATCH]:
            batch = batch.add_json(record)
        await batch.send()


async def measured(laser: ls.Laser) -> tuple[float, float]:
    """(seconds to frames, seconds of it for cursors and JSON alone): the median of several runs each."""
    whole, reading = [], []
    for _ in range(RUNS):
        begun = time.perf_counter()
        found = await rewind(laser, "bench")
        whole.append(time.perf_counter() - begun)
        assert found.read == RECORDS and len(found.minutes) == MINUTES
        begun = time.perf_counter()
        for topic in (POSITIONS, EVENTS):
            cursor = laser.topic(topic).replay()
            while messages := await cursor.poll():
                for message in messages:
                    message.json()
        reading.append(time.perf_counter() - begun)
    return statistics.median(whole), statistics.median(reading)


def kept(number: int) -> int:
    """Bytes a fold keeps of so many position reports of the same day."""
    tracemalloc.start()
    fold = Fold()
    for start in range(0, number, 10_000):
        fold.positions(positions(number)[start : start + 10_000])
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size


async def main() -> int:
    """Measure and write. Returns the exit code: 1 when something misses."""
    with tempfile.TemporaryDirectory() as folder:
        supervisor = await Supervisor.start(folder=Path(folder) / "data", embedded=True)
        try:
            laser = await connect(supervisor.connection, "fleet-bench")
            await laser.stream("fleet-bench").ensure()
            await fill(laser, POSITIONS, positions(RECORDS - OF_EVENTS))
            await fill(laser, EVENTS, events(OF_EVENTS))
            whole, reading = await measured(laser)
        finally:
            await supervisor.stop()
    small, large = kept(20_000), kept(80_000)
    rows = [
        (f"{RECORDS:,} records to {MINUTES} frames", f"{whole:.2f} s", f"under {AIM:g} s", whole < AIM),
        ("of it cursors and JSON", f"{reading / whole:.0%}", "over 50%", reading / whole > 0.5),
        (
            "kept of 4 times the position reports",
            f"{large / small:.2f} times",
            "under 1.1 times",
            large / small < 1.1,
        ),
    ]
    for what, found, aim, holds in rows:
        print(f"{what:40} {found:>12}  aim {aim:16} {'holds' if holds else 'misses'}")
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = os.getloadavg()[0]
    table = "\n".join(f"| {w} | {f} | {a} | {'holds' if h else 'misses'} |" for w, f, a, h in rows)
    _FILE.write_text(
        "# Rewind\n\nWritten by `python -m bench.rewind`, on the embedded stack, median of "
        f"{RUNS} runs.\n\n| what | measured | aim | |\n|---|---:|---|---|\n{table}\n\n"
        f"{when}, {os.cpu_count()} cores, Python {sys.version.split()[0]}, laser-sdk 0.8.2, load average {load:.1f}.\n"
    )
    return 0 if all(holds for *_, holds in rows) else 1


if __name__ == "__main__":
    ending.run(main)
