"""A loaded stack that is killed at random moments, and what must hold after every restart."""

import asyncio
import random
import time
from pathlib import Path

import laser_sdk as ls

from tests.stack.crash_workers import (
    GROUP,
    PARTITIONS,
    STREAM,
    TOPIC,
    Forks,
    Keys,
    Lease,
    Member,
    Place,
    Publisher,
)
from tests.stack.rebuilding import assert_folder_rebuilds
from tests.stack.running import StackProcess

SECONDS = 60.0


async def prepare(connection: str) -> None:
    """The topic, its group and the view on it."""
    laser = await ls.Laser.connect(connection, stream=STREAM)
    await laser.stream(STREAM).ensure()
    await laser.topic(TOPIC).ensure(PARTITIONS)
    await laser.topic(TOPIC).ensure_consumer_group(GROUP)
    fields = ["n", "writer", "state", "extra"]
    await laser.projections().register(
        ls.ProjectionBuilder("jobs.v1").content_type("json").fields(fields).build()
    )
    binding = ls.ProjectionBindingBuilder().source(STREAM, TOPIC).allow("jobs.v1")
    await laser.bindings().apply(binding.default_projection("jobs.v1").index(TOPIC).notify().build())
    await laser.close()


class Crashes:
    """A loaded stack in `folder`; `once` kills it at a random moment, starts it again and checks everything."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.place = Place()
        self.stack = StackProcess(folder)
        committed: dict[int, int] = {}
        self.publishers = [Publisher(self.place, partition) for partition in range(PARTITIONS)]
        self.keys, self.lease = Keys(self.place), Lease(self.place)
        self.forks = Forks(self.place)
        members = [Member(self.place, number, committed) for number in range(2)]
        self.workers = [*self.publishers, self.keys, self.lease, self.forks, *members]
        self._tasks: list[asyncio.Task[None]] = []
        self.kills = 0
        self.rows_rebuilt = 0
        self.recoveries: list[float] = []

    async def __aenter__(self) -> "Crashes":
        try:
            self.place.connection = await self.stack.start()
            await prepare(self.place.connection)
        except BaseException:  # told to end before anybody could leave it
            await self.stack.end()
            raise
        self.place.up.set()
        self.place.go.set()
        self._tasks = [asyncio.create_task(worker.run()) for worker in self.workers]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.place.stopping = True
        self.place.go.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self.workers:
            worker.dropped()
        await self.stack.end()

    async def once(self, *, rebuild: bool) -> None:
        """One death. AssertionError when anything that was told is not so."""
        goal = self.place.answers + self.chance.randrange(1, 300)
        deadline = time.monotonic() + SECONDS
        while self.place.answers < goal:
            self._still_well(deadline)
            await asyncio.sleep(self.chance.random() * 0.004)
        self.place.up.clear()
        await self.stack.kill()
        self.kills += 1
        self.place.go.clear()
        started = time.perf_counter()
        await self.stack.start()
        self.recoveries.append(time.perf_counter() - started)
        self.place.up.set()
        deadline = time.monotonic() + SECONDS
        while not all(worker.idle.is_set() for worker in self.workers):
            self._still_well(deadline)
            await asyncio.sleep(0.002)
        for worker in self.workers:
            await worker.check()
        if rebuild:
            self.rows_rebuilt = await asyncio.to_thread(assert_folder_rebuilds, self.stack.folder)
            assert self.rows_rebuilt >= sum(len(publisher.log) for publisher in self.publishers) * 0.5
        self.place.go.set()

    def _still_well(self, deadline: float) -> None:
        for task in self._tasks:
            if task.done():
                task.result()
        assert time.monotonic() < deadline, "the load stands still"
