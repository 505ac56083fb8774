"""The clock can be told to hurry in the middle of a day: the simulator is replaced by a faster one that knows the same."""

import pytest

from desk.control import DeskError
from tests.delivery.days import LONG, all_hold, attended, running


async def test_a_watched_day_that_is_told_to_hurry_ends_as_any_other(tmp_path):
    async with running(tmp_path, speed=0.5, vans=2, orders=2) as fleet, attended(fleet, bill=False):
        closure = await fleet.incident("closure", "van-1")
        await fleet.until("closed", incident=closure)
        await fleet.speed("max")
        await fleet.until_over(LONG)
        await all_hold(fleet)
        assert not [e for e in fleet.events() if e["kind"] == "killed"]


async def test_a_speed_that_is_none(tmp_path):
    async with running(tmp_path, vans=2, orders=0) as fleet:
        with pytest.raises(DeskError, match="is not a speed"):
            await fleet.speed("fast")
