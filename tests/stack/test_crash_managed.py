"""SIGKILL under load on every surface at once: the sample of what bench/crash_stack.py does at length."""

import os

from tests.stack.crashing import Crashes

KILLS = int(os.environ.get("STACK_KILLS", "8"))


async def test_what_clients_were_told_is_so_after_every_kill(tmp_path):
    async with Crashes(tmp_path, seed=7) as crashes:
        for number in range(KILLS):
            await crashes.once(rebuild=number % 4 == 3)
        assert len(crashes.keys.rows) > 5
        assert crashes.lease.effects > 5
        assert crashes.forks.made > 3
        assert all(publisher.log for publisher in crashes.publishers)
        assert crashes.rows_rebuilt
        assert (await crashes.stack.stop())[1] == ""
