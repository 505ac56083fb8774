"""Days that nobody thought of: incidents drawn at random, under the monkey and without it, end with every check."""

import random
from typing import Any

import pytest

from desk.delivery.incidents import INCIDENTS, Planned
from tests.delivery.days import LONG, all_hold, attended, running

SEEDS = (0, 1, 2, 57)
"""57: the gateway goes down a second time when the vans are nearly in, and a message is parked after the day."""


def drawn(seed: int) -> dict[str, Any]:
    """Two to four vans, one to six incidents (drops that fail most of all), none to three orders."""
    draw = random.Random(seed)
    vans = draw.choice((2, 2, 3, 4))
    planned = [
        Planned(
            round(draw.uniform(0, 45), 1),
            draw.choice((*INCIDENTS, "nobody_home", "nobody_home")),
            draw.choice(("", *(f"van-{number + 1}" for number in range(vans)))),
        )
        for _ in range(draw.randint(1, 6))
    ]
    planned.sort(key=lambda p: p.minute)
    return {"vans": vans, "orders": draw.choice((0, 0, 3)), "incidents": tuple(planned), "seed": seed}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("chaos", [False, True], ids=["in peace", "under the monkey"])
async def test_a_day_drawn_at_random_ends_with_every_check(tmp_path, seed, chaos):
    async with running(tmp_path, **drawn(seed)) as fleet, attended(fleet):
        if chaos:
            await fleet.chaos(True, every=0.3, seed=seed)
            await fleet.until("day_over", timeout=LONG)
            await fleet.chaos(False)
        await fleet.until_over(LONG)
        await all_hold(fleet)
