"""The real SDK against a real process: publishing, reading, groups, and work taken over from the dead."""

import asyncio
import contextlib
import os
import sys
import uuid
from pathlib import Path

import laser_sdk as ls
import pytest
import pytest_asyncio

from desk.runtime.connect import connect
from tests.stack.running import stack_process

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECONDS = 60


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory):
    async with stack_process(tmp_path_factory.mktemp("clients")) as running:
        yield running
        assert await running.stop() == (0, "")


@pytest_asyncio.fixture(loop_scope="module")
async def laser(stack):
    stream = f"t-{uuid.uuid4().hex[:8]}"
    made = await connect(stack.connection, stream)
    await made.stream(stream).ensure()
    yield made
    await made.close()


class Worker:
    """tests/stack/worker.py in its own process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def until(self, *words: str) -> None:
        """Read its lines until this one."""
        wanted = " ".join(words)
        async with asyncio.timeout(SECONDS):
            while (line := (await self.process.stdout.readline()).decode().strip()) != wanted:
                assert line, "the worker ended"

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@pytest_asyncio.fixture(loop_scope="module")
async def hire(stack, laser):
    async with contextlib.AsyncExitStack() as cleanup:

        async def start(mode: str) -> Worker:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.stack.worker", stack.connection, laser.default_stream, mode),
                stdout=asyncio.subprocess.PIPE,
                cwd=Path(__file__).parents[2],
            )
            worker = Worker(process)
            cleanup.push_async_callback(gone, process)
            await worker.until("ready")
            return worker

        yield start


async def gone(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def read(reader: ls.Consumer, count: int) -> list[bytes]:
    return [(await reader.next_within(SECONDS * 1_000)).payload for _ in range(count)]


async def test_what_is_published_is_replayed(laser):
    topic = laser.topic("events")
    await topic.ensure(partitions=1)
    for n in range(20):
        await topic.publish().json({"n": n}).send()
    records = await topic.replay().poll()
    assert [record.json()["n"] for record in records] == list(range(20))
    assert [record.id.offset for record in records] == list(range(20))


async def test_a_batch_is_read_from_any_offset(laser):
    topic = laser.topic("events")
    await topic.ensure(partitions=1)
    producer = topic.producer(batch_length=100)
    await producer.init()
    sent = [f"m{n}".encode() for n in range(100)]
    result = await producer.send_batch(sent)
    assert result.confirmations[0].base_offset == 0
    reader = topic.consumer("middle", polling="offset", offset=37, batch_length=7, auto_commit="disabled")
    assert await read(reader, 63) == sent[37:]


async def test_a_large_payload_comes_back(laser):
    topic = laser.topic("large")
    await topic.ensure(partitions=1)
    payload = os.urandom(8 * 1024 * 1024)
    await topic.publish().payload(payload).send()
    assert bytes((await topic.replay().poll())[0].payload) == payload


async def test_a_group_shares_the_work_and_nothing_is_lost(laser, hire):
    topic = laser.topic("jobs")
    await topic.ensure(partitions=2)
    first, second = await hire("handle"), await hire("handle")
    for n in range(4):
        await topic.publish().payload(str(n).encode()).send()

    done: asyncio.Queue[str] = asyncio.Queue()

    async def watch(worker: Worker) -> None:
        while line := (await worker.process.stdout.readline()).decode().split():
            if line[0] == "done":
                done.put_nowait(line[1])

    watching = [asyncio.create_task(watch(worker)) for worker in (first, second)]
    seen: set[str] = set()
    async with asyncio.timeout(SECONDS):
        while seen != {"0", "1", "2", "3"}:
            seen.add(await done.get())
    for task in watching:
        task.cancel()


@pytest.mark.parametrize("partitions", [1, 3])
async def test_what_a_killed_worker_held_goes_to_its_replacement(laser, hire, partitions):
    topic = laser.topic("jobs")
    await topic.ensure(partitions=partitions)
    victim = await hire("hang")
    await topic.publish().payload(b"job").send()
    await victim.until("got", "job")
    await victim.kill()
    replacement = await hire("handle")
    await replacement.until("done", "job")


async def test_what_a_killed_worker_held_goes_to_the_one_that_waits(laser, hire):
    topic = laser.topic("jobs")
    await topic.ensure(partitions=1)
    victim = await hire("hang")
    spare = await hire("handle")
    await topic.publish().payload(b"job").send()
    await victim.until("got", "job")
    await victim.kill()
    await spare.until("done", "job")


async def test_what_was_committed_is_not_delivered_again(laser, hire):
    topic = laser.topic("jobs")
    await topic.ensure(partitions=1)
    worker = await hire("handle")
    await topic.publish().payload(b"first").send()
    await worker.until("done", "first")
    await worker.kill()
    await topic.publish().payload(b"second").send()
    replacement = await hire("handle")
    line = await asyncio.wait_for(replacement.process.stdout.readline(), SECONDS)
    assert line == b"got second\n"
