"""A van that stands where its next drop is makes it: whatever plan came while it stood there, the day goes on."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from desk.delivery.driving import Van
from desk.delivery.history import History
from desk.delivery.incidents import Planned
from desk.delivery.planning import changes, progress
from desk.delivery.planning.round import Round
from desk.delivery.planning.start import start_rounds
from desk.delivery.roads import DEPOT, load_legs, load_places
from desk.delivery.vans import Vans
from tests.delivery.days import LONG, all_hold, running

PLACES, METRES = load_places(), load_legs().metres
POINTS = {p.id: (p.lon, p.lat) for p in PLACES.values() if p.id != DEPOT}
ROUNDS, _ = start_rounds((PLACES[DEPOT].lon, PLACES[DEPOT].lat), POINTS, ["van-1", "van-2", "van-3"], METRES)


class World:
    """One van and its round, nobody else; what the van does is taken down."""

    def __init__(self, van: Van, round_: Round) -> None:
        self.f, self.places, self.metres, self.watched = SimpleNamespace(), PLACES, METRES, True
        self.history, self.round = History(), round_
        self.history.vans[van.name] = van
        self.moved: list[tuple[str, str]] = []

    async def change(self, van: str, change: Callable[[Round], Round]) -> Round:
        self.round = change(self.round)
        return self.round

    async def moves(self, kind: str, van: Van, minute: float, text: str, **fields: Any) -> None:
        self.moved.append((kind, fields.get("stop", "")))
        self.history.vans[van.name] = van


async def test_a_van_that_arrives_between_two_handovers_and_stands_at_its_first_drop_makes_it() -> None:
    round_ = ROUNDS["van-3"]
    first, second, *_ = round_.drops
    round_ = progress.claimed(progress.delivered(progress.reached(progress.claimed(round_), first), first))
    round_ = changes.taken_over(round_, ROUNDS["van-1"].drops, METRES)
    assert round_.heading == ""  # another drop comes first now, but the van is there before anybody tells it
    round_ = progress.reached(round_, second)
    round_ = changes.taken_over(round_, ROUNDS["van-2"].drops, METRES)
    assert (round_.at, round_.drops[0], round_.serving) == (second, second, False)
    world = World(Van("van-3", at=second), round_)
    vans: Any = Vans(world)  # type: ignore[arg-type]
    await vans.settle_one("van-3", round_)
    await vans.arrive(world.history.vans["van-3"], 0.0)
    assert world.moved == [("departed", second), ("arrived", second)]
    assert world.round.serving and world.history.vans["van-3"].doing == "making"


@pytest.mark.parametrize(
    ("vans", "incidents"),
    [
        (2, (Planned(32, "nobody_home", "van-1"),)),  # the last drop of its round
        (3, (Planned(9, "nobody_home", "van-1"), Planned(9, "closure", "van-1"))),
    ],
    ids=["nobody home at the last drop", "nobody home, and the road to the next drop closed"],
)
async def test_a_failed_drop_is_tried_again_from_where_the_van_stands(tmp_path, vans, incidents) -> None:
    async with running(tmp_path, vans=vans, orders=0, incidents=incidents) as fleet:
        await fleet.until_over(LONG)
        await all_hold(fleet)
        told = [(e["kind"], e["stop"]) for e in fleet.events() if e["kind"] in ("failed", "departed", "delivered")
                and e["van"] == "van-1"]  # fmt: skip
        failed = [stop for kind, stop in told if kind == "failed"]
        assert len(failed) == 1
        at = told.index(("failed", failed[0]))
        assert told[at + 1 : at + 3] == [("departed", failed[0]), ("delivered", failed[0])]
