"""What is refused is a sentence a learner can read, also where somebody else was first."""

import laser_sdk as ls

from desk.control import DeskError
from desk.course import refused


class Conflict(ls.LaserError):
    """As the client raises it when a key is not as it was expected to be."""

    version_conflict = True


async def fails(error: Exception) -> None:
    raise error


async def works() -> None:
    """Nothing refuses this."""


async def test_a_refusal_is_a_sentence():
    somebody = "Somebody has written there before: nothing was changed."
    assert await refused(fails(Conflict("kv: kv version conflict (current: Some(1))"))) == somebody
    assert await refused(fails(DeskError("It cannot be quarantined."))) == "It cannot be quarantined."
    assert await refused(works()) == "It was not refused."
