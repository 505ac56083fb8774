"""python -m bench.stack [--quick]: the embedded stack's speed, each row beside its reference in one run.

Everything goes through the real wheel; ours and the reference take turns, so what the machine does meanwhile
hits both. Writes stack.md and stack.json beside this file (not with --quick) and prints one row a line.
"""

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import laser_sdk as ls

from bench import direct, ending
from bench.canned_server import Recorder
from bench.measure import (
    Pair,
    Row,
    Work,
    each,
    interleaved,
    limit_row,
    rate_row,
    repeat,
    tail_row,
    time_row,
    timed,
)
from bench.servers import Process, client, connected, running, stack
from bench.workload import BATCH, BODY, bind, fill_keys, load, read_all


@dataclass(frozen=True)
class Sizes:
    """How much of everything; `turns` are the interleaved repetitions."""

    turns: int = 7
    calls: int = 1_000
    replayed: int = 100_000
    rows: int = 100_000
    fetched: int = 20_000
    keys: int = 2_000
    calls_under_query: int = 300
    idle_seconds: float = 5.0
    starts: int = 5

    @property
    def many(self) -> int:
        """Ten times the rows."""
        return 10 * self.rows


QUICK = Sizes(
    turns=3,
    calls=200,
    replayed=20_000,
    rows=10_000,
    fetched=5_000,
    keys=200,
    calls_under_query=50,
    idle_seconds=1.0,
    starts=2,
)


async def log_rows(sizes: Sizes, ours: ls.Laser, null: ls.Laser) -> AsyncIterator[Row]:
    """Publishing and replaying, against the server that keeps nothing."""
    both = (ours, null)
    for laser in both:
        for topic in ("single", "batches", "replay"):
            await laser.topic(topic).ensure(1)

    def send(laser: ls.Laser) -> Work:
        topic = laser.topic("single")
        return repeat(lambda: topic.send(BODY), sizes.calls)

    pair = await interleaved(*map(send, both), sizes.turns)
    yield rate_row("publish one by one, 256 B", pair, sizes.calls, "msg", 0.75, 2_500)

    batch, batches = [BODY] * BATCH, max(sizes.calls // 10, 10)

    def send_batches(laser: ls.Laser) -> Work:
        topic = laser.topic("batches")
        return repeat(lambda: topic.batch(batch), batches)

    pair = await interleaved(*map(send_batches, both), sizes.turns)
    yield rate_row("publish in batches of 1,000, 256 B", pair, batches * BATCH, "msg", 0.6)

    for laser in both:
        for _ in range(0, sizes.replayed, BATCH):
            await laser.topic("replay").batch(batch)
    replays = [lambda laser=laser: read_all(laser, "replay", sizes.replayed) for laser in both]
    pair = await interleaved(*replays, sizes.turns)
    yield rate_row(f"replay of {sizes.replayed:,}", pair, sizes.replayed, "msg", 0.6)


async def key_rows(sizes: Sizes, ours: ls.Laser) -> AsyncIterator[Row]:
    """Key-value calls against the lightest round trip the wheel has (hello: nothing asked, a stored answer)."""
    keys = ours.kv("keys")
    await fill_keys(ours, sizes.keys)
    ping = repeat(ours.refresh_capabilities, sizes.calls)
    numbers = iter(range(10**9))

    def key() -> str:
        return f"key-{next(numbers) * 7 % sizes.keys}"

    for what, call, ratio in (
        ("kv set, 256 B", lambda: keys.set(key()).bytes(BODY).send(), 0.6),
        ("kv get, 256 B", lambda: keys.get(key()), 0.8),
    ):
        pair = await interleaved(repeat(call, sizes.calls), ping, sizes.turns)
        yield rate_row(f"{what}, against a ping", pair, sizes.calls, "call", ratio)


async def bound_row(sizes: Sizes, ours: ls.Laser) -> Row:
    """Appending with a fold against appending without one; a new topic every turn."""
    numbers = iter(range(1_000))

    async def bound() -> None:
        await load(ours, topics[0], sizes.rows)

    async def unbound() -> None:
        await load(ours, topics[1], sizes.rows)

    turns = max(sizes.turns // 2, 2)
    ours_seconds, reference_seconds = [], []
    for turn in range(turns):
        number = next(numbers)
        topics = (f"bound{number}", f"unbound{number}")
        await bind(ours, topics[0])
        await ours.topic(topics[1]).ensure(1)
        pair = [(bound, ours_seconds), (unbound, reference_seconds)]
        for work, seconds in pair if turn % 2 else reversed(pair):
            seconds.append(await timed(work))
    return time_row(
        f"{sizes.rows:,} records in batches into a bound view, against no binding",
        Pair(ours_seconds, reference_seconds),
        3.0,
    )


async def query_rows(sizes: Sizes, laser: ls.Laser, folder: Path) -> AsyncIterator[Row]:
    """Queries through the wheel against the same SQL directly on the same file."""
    view = direct.View(folder, "stream:bench/rows")
    cases = {
        "count": lambda: laser.query("rows").count(),
        "group_by": lambda: laser.query("rows").group_by(["van"]).count().sum("minutes"),
        "filter + order": lambda: (
            laser.query("rows")
            .filter_gte("prio", 50)
            .where_eq("status", "open")
            .order_desc("minutes")
            .limit(50)
        ),
    }
    for name, query in cases.items():
        await query().fetch()  # the stack makes its index, if it wants one, before the SQL is taken
        sql = view.statement(query())
        pair = await interleaved(lambda q=query: q().fetch(), lambda s=sql: view.run(s), sizes.turns * 2)
        yield time_row(f"{name} over {sizes.rows:,} rows, against its SQL", pair, 1.5, 3.0)
    view.close()


async def fetch_row(sizes: Sizes, laser: ls.Laser, server: Process, scratch: Path) -> Row:
    """Paging through many rows against the wheel reading the same pages from a recording."""

    async def fetch(source: ls.Laser) -> None:
        rows = await source.query("rows").filter_lt("id", sizes.fetched).limit(1_000).fetch_all()
        assert len(rows) == sizes.fetched, f"{len(rows)} of {sizes.fetched} rows"

    recorder = Recorder(server.address)
    async with recorder as port:
        credentials = server.connection.rpartition("@")[0]
        through = await ls.Laser.connect(f"{credentials}@127.0.0.1:{port}", stream="bench")
        await fetch(through)
        await through.close()
    recorder.save(scratch / "pages")
    with running(Process("bench.canned_server", str(scratch / "pages"))) as canned:
        recorded = await ls.Laser.connect(canned.connection, stream="bench")
        pair = await interleaved(lambda: fetch(laser), lambda: fetch(recorded), sizes.turns)
        await recorded.close()
    return time_row(f"fetch_all of {sizes.fetched:,} rows, against the wheel alone", pair, 1.5)


async def busy_rows(sizes: Sizes, laser: ls.Laser, other: ls.Laser) -> AsyncIterator[Row]:
    """Calls of one client while another client's query runs for a second, against the same calls when idle."""
    topic = laser.topic("polled")
    await topic.ensure(1)
    await topic.batch([BODY] * 10)
    await fill_keys(laser, 10)

    async def slow() -> float:
        query = other.query("rows").group_by(["id", "van"]).count_distinct("minutes").stddev("minutes")
        started = time.perf_counter()
        await query.order_desc("count_distinct").fetch()
        return time.perf_counter() - started

    async def keep_busy(seconds: list[float]) -> None:
        while True:
            seconds.append(await slow())

    calls = {
        "a poll": lambda: topic.replay(from_offsets=[5]).poll(),
        "a kv get": lambda: laser.kv("keys").get("key-1"),
    }
    for name, call in calls.items():
        await each(call, 50)
        idle, busy, lengths = [], [], []
        for _ in range(3):
            idle += await each(call, sizes.calls_under_query)
            task = asyncio.create_task(keep_busy(lengths))
            await asyncio.sleep(0.1)
            busy += await each(call, sizes.calls_under_query)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await slow()  # whatever still ran is over
        length = await slow()
        yield tail_row(f"{name} while a query of {length:.1f} s runs, against idle", busy, idle, 3.0, 25.0)


async def scale_rows(sizes: Sizes, small: ls.Laser, large: ls.Laser) -> AsyncIterator[Row]:
    """The same calls on ten times the data."""
    rows = {small: sizes.rows, large: sizes.many}
    keys = {small: sizes.keys, large: 10 * sizes.keys}
    calls = max(sizes.calls // 2, 100)
    numbers = iter(range(10**9))

    def pick(below: int) -> int:
        return next(numbers) * 7919 % below

    def append(laser: ls.Laser):
        return lambda: laser.topic("rows").publish({"id": -1, "status": "new"}).send()

    def poll(laser: ls.Laser):
        return lambda: laser.topic("rows").replay(batch=10, from_offsets=[rows[laser] - 1]).poll()

    def get(laser: ls.Laser):
        return lambda: laser.kv("keys").get(f"key-{pick(keys[laser])}")

    def query(laser: ls.Laser):
        return lambda: laser.query("rows").where_eq("id", pick(rows[laser])).fetch()

    cases = {"poll": poll, "kv get": get, "indexed query": query, "append": append}
    for name, call in cases.items():
        works = [repeat(call(laser), calls) for laser in (large, small)]
        pair = await interleaved(*works, sizes.turns)
        yield time_row(f"{name} at 10x the data, against 1x", pair, 1.3, count=calls)


async def idle_row(sizes: Sizes, server: Process) -> Row:
    """What six agents without work cost the stack."""
    lasers = [await client(server) for _ in range(6)]
    await lasers[0].bootstrap(partitions=8, retention=ls.TopicRetention.expire_after(86_400_000))

    async def handler(_context: object, _message: object) -> None:
        """Never called."""

    agents = [laser.spawn_agent(f"idle-{n}", "agent.sessions", handler) for n, laser in enumerate(lasers)]
    for agent in agents:
        await agent.ready()
    shares = []
    for _ in range(3):
        before, started = server.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(sizes.idle_seconds)
        shares.append((server.cpu_seconds() - before) / (time.perf_counter() - started) * 100)
    for agent in agents:
        await agent.shutdown()
    for laser in lasers:
        await laser.close()
    return limit_row("six idle agents, share of a core", shares, 5.0, "%")


async def run(sizes: Sizes, scratch: Path) -> AsyncIterator[Row]:
    """All rows, each as soon as it is measured."""
    with running(stack(scratch / "log")) as server, running(Process("bench.null_server")) as null_server:
        async with connected(server) as ours, connected(null_server) as null:
            async for row in log_rows(sizes, ours, null):
                yield row
            async for row in key_rows(sizes, ours):
                yield row
        yield await idle_row(sizes, server)
    with running(stack(scratch / "small")) as small_server, running(stack(scratch / "large")) as large_server:
        async with connected(small_server) as small, connected(large_server) as large:
            yield await bound_row(sizes, small)
            for laser, count in ((small, sizes.rows), (large, sizes.many)):
                await bind(laser, "rows")
                await load(laser, "rows", count)
                await fill_keys(laser, sizes.keys * count // sizes.rows)
            async for row in query_rows(sizes, small, scratch / "small"):
                yield row
            yield await fetch_row(sizes, small, small_server, scratch)
            async for row in scale_rows(sizes, small, large):
                yield row
            async with connected(large_server) as other:
                async for row in busy_rows(sizes, large, other):
                    yield row
        memory = [large_server.resident_mb()]
        large_server.kill()
    empty, full = [], []
    for number in range(sizes.starts):
        with running(stack(scratch / f"empty{number}")) as server:
            empty.append(server.seconds_to_start)
        with running(stack(scratch / "large")) as large_server:
            full.append(large_server.seconds_to_start)
            async with connected(large_server) as laser:
                await laser.query("rows").count().fetch()
            memory.append(large_server.resident_mb())
            large_server.kill()
    yield limit_row("from start to accepting, empty", empty, 0.3, "s")
    yield limit_row(f"from SIGKILL with {sizes.many:,} records to accepting", full, 1.0, "s")
    yield limit_row(f"resident memory with {sizes.many:,} records on disk", [max(memory)], 120.0, "MB")


def as_markdown(rows: list[Row], about: dict[str, object]) -> str:
    """The result file."""
    head = [
        "# The embedded stack: speed",
        "",
        "Written by `make bench` (`python -m bench.stack`). Ours and the reference take turns in one run, through the",
        "real wheel; numbers are medians over the turns, ratios medians of the ratios turn by turn. A ping is the",
        "lightest round trip the wheel offers: hello, which asks nothing and is answered from memory. The null server",
        "(`null_server.py`) speaks through the same frames and keeps nothing; the wheel alone means the same pages,",
        "recorded and played back (`canned_server.py`).",
        "",
        f"{about['when']}, {about['cores']} cores, Python {about['python']}, laser-sdk {about['sdk']}; "
        f"load average before {about['load before']}, after {about['load after']}; {about['seconds']} s in all.",
        "",
        "| what | ours | reference | measured | aim | verdict |",
        "|---|---:|---:|---:|---:|---|",
    ]
    return "\n".join([*head, *(f"| {' | '.join(cells(row))} |" for row in rows), ""])


def cells(row: Row) -> tuple[str, ...]:
    return row.what, row.ours, row.reference, row.value, row.aim, row.verdict


def load_average() -> str:
    return f"{os.getloadavg()[0]:.1f}"


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast is it")
    quick = parser.parse_args().quick
    started, before, rows = time.perf_counter(), load_average(), []
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        async for row in run(QUICK if quick else Sizes(), Path(scratch)):
            rows.append(row)
            print("  ".join(cells(row)), flush=True)
    about = {
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sdk": importlib.metadata.version("laser-sdk"),
        "load before": before,
        "load after": load_average(),
        "seconds": round(time.perf_counter() - started),
    }
    if not quick:
        here = Path(__file__).parent
        here.joinpath("stack.md").write_text(as_markdown(rows, about))
        result = {"about": about, "rows": [row.as_json() for row in rows]}
        here.joinpath("stack.json").write_text(json.dumps(result, indent=1) + "\n")
    missed = sum(not row.holds for row in rows)
    print(f"{len(rows)} rows, {missed} missed, {about['seconds']} s")
    return 0


if __name__ == "__main__":
    ending.run(main)
