"""The runner's threads: work that is stopped ends, whenever the stop comes."""

import asyncio
import threading
import time

import apsw
import pytest

from desk.stack.query.runner import Runner, Stopped

HOUR_US = 3_600_000_000
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


async def test_a_stop_between_two_statements_stops_the_second():
    runner = Runner(lambda: apsw.Connection(":memory:"), threads=1)
    between, stopped = threading.Event(), threading.Event()

    def work(db):
        db.execute("SELECT 1").fetchall()
        between.set()
        stopped.wait()
        return db.execute(ENDLESS).get

    async with asyncio.timeout(60):
        deadline = time.time_ns() // 1000 + HOUR_US
        job = runner.submit(work, deadline)
        await asyncio.to_thread(between.wait)
        job.stop("cancelled")
        stopped.set()
        with pytest.raises(Stopped, match="cancelled"):
            await job.future
        assert await runner.submit(lambda db: db.execute("SELECT 2").get, deadline).future == 2
    runner.close()
