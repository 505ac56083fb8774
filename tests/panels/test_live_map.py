"""The live map sends what changed and nothing else."""

from itertools import pairwise

import pytest

from desk.analysis.whereabouts import beside
from desk.delivery.planning.round import Round
from desk.panels import layers
from desk.panels.live_map import MapPanel
from desk.panels.tracks import Glide, Tracks, halfway
from tests.analysis.tuesday import records
from tests.panels.fleets import PaperFleet

CLOSED = next(report for report in records()["positions"] if report.get("why") == "closure")


@pytest.fixture
async def shown():
    fleet = PaperFleet()
    fleet.drive(0.0)
    panel = MapPanel(fleet)
    panel._task.cancel()  # the test beats
    await panel.update()
    return fleet, panel


def sent(panel, trait: str) -> list[str]:
    """Note every van whose trait changes from now on."""
    changes: list[str] = []
    for name, picture in panel._vans.items():
        picture.observe(lambda _change, name=name: changes.append(name), trait)
    return changes


async def test_only_vans_that_moved_are_sent(shown):
    fleet, panel = shown
    moved = sent(panel, "bounds")
    last = {name: picture.bounds for name, picture in panel._vans.items()}
    van = fleet.positions[0]
    fleet.positions.append({**van, "minute": 0.3, "lon": van["lon"] + 0.001})
    await panel.update()
    assert moved == [van["van"]]
    assert panel._vans[van["van"]].bounds != last[van["van"]]
    await panel.update()  # the second half of its way
    await panel.update()
    assert moved == [van["van"]] * 2


def test_a_van_is_shown_half_of_its_step_on_the_road_and_then_the_rest():
    rows = [r for r in records()["positions"] if r["van"] == "van-1"][:20]
    tracks, glide = Tracks(), Glide()
    for row in rows:
        moved = tracks.take([row]).moved
        half, rest = glide.beat(moved, tracks), glide.beat({}, tracks)
        assert {**half, **rest} == moved
        for point in half.values():
            assert min(beside(u, v, point) for u, v in pairwise(tracks.road("van-1"))) < 1e-5
    assert glide.beat({}, tracks) == {}


def test_half_of_the_way_goes_round_the_corner_or_over_the_field():
    corner = [(0.0, 0.0), (0.0, 4.0), (4.0, 4.0)]
    assert halfway(corner, (0.0, 2.0), (4.0, 4.0)) == (1.0, 4.0)
    assert halfway(corner, (1.0, 1.0), (3.0, 1.0)) == (2.0, 1.0)
    assert halfway((), (0.0, 0.0), (2.0, 0.0)) == (1.0, 0.0)
    assert halfway(corner, (0.0, 1.0), (0.0, 1.0)) == (0.0, 1.0)


async def test_a_picture_changes_with_what_a_van_does_not_with_where_it_is(shown):
    fleet, panel = shown
    drawn = sent(panel, "url")
    fleet.drive(CLOSED["minute"] - 0.1)
    await panel.update()
    assert not drawn
    fleet.drive(CLOSED["minute"])
    await panel.update()
    assert drawn == ["van-1"]
    assert "stopped" in panel._vans["van-1"].url


async def test_vans_that_wait_at_one_place_stand_side_by_side(shown):
    fleet, panel = shown
    home = {"lon": 144.9, "lat": -37.8, "status": "idle"}
    fleet.positions += [{**row, **home, "minute": 99.0} for row in fleet.positions[:3]]
    await panel.update()
    pictures = [picture.url for _, picture in sorted(panel._vans.items())]
    assert [f"translate%28{28 * n}%200%29" in picture for n, picture in enumerate(pictures)] == [True] * 3
    assert "0 vans on the road" in panel._clock.value
    fleet.positions += [{**row, **home, "status": "parked", "minute": 99.1} for row in fleet.positions[1:3]]
    await panel.update()
    pictures = [picture.url for _, picture in sorted(panel._vans.items())]
    places = ["0%200", "0%2028", "28%2028"]  # those that are kept from driving, in a row of their own
    assert all(f"translate%28{place}%29" in picture for place, picture in zip(places, pictures, strict=True))
    assert ["parked" in picture for picture in pictures] == [False, False, True]


async def test_each_leg_of_a_trail_is_sent_once(shown):
    fleet, panel = shown
    fleet.drive(20.0)
    await panel.update()
    trails = panel._group["trails"].layers
    assert trails
    legs = {line.model_id: line.locations for line in trails}
    fleet.drive(60.0)
    await panel.update()
    after = panel._group["trails"].layers
    assert len(after) > len(trails)
    assert {line.model_id: line.locations for line in after[: len(trails)]} == legs


async def test_a_round_that_stayed_as_it_is_sends_nothing(shown):
    fleet, panel = shown
    fleet.round_of = {"van-1": Round("van-1", drops=("s-01", "s-02"))}
    panel._changed()
    await panel.update()
    ahead = panel._ahead["van-1"]
    assert len(ahead.locations) == 3  # two drops and the way home
    changes = []
    ahead.observe(changes.append, "locations")
    panel._changed()
    await panel.update()
    assert not changes
    fleet.round_of = {"van-1": Round("van-1", drops=("s-02",), at="s-01", parked=True)}
    panel._changed()
    await panel.update()
    assert ahead.locations == []


async def test_a_closed_road_is_marked_until_the_drop_behind_it_is_made(shown):
    fleet, panel = shown
    blocked = CLOSED["stop"]
    fleet.round_of = {"van-1": Round("van-1", drops=(blocked,))}
    fleet.drive(CLOSED["minute"])
    panel._changed()
    await panel.update()
    assert len(panel._group["closed"].layers) == 1
    fleet.round_of = {"van-1": Round("van-1", at=blocked)}
    panel._changed()
    await panel.update()
    assert not panel._group["closed"].layers


async def test_a_stop_shows_its_state_and_its_popup_says_who_comes(shown):
    fleet, panel = shown
    fleet.state_of = {
        "s-01": {"state": "delivered", "van": "van-1"},
        "s-02": {"state": "planned", "van": "van-1"},
    }
    fleet.round_of = {"van-1": Round("van-1", drops=("s-02",))}
    panel._changed()
    await panel.update()
    assert panel._stops["s-01"].fill_color == layers.STOPS["delivered"][0]
    panel._tell("s-02")
    assert "van-1, between" in panel._popup_text.value
    panel._tell("s-03")
    assert "has not ordered" in panel._popup_text.value


async def test_tiles_come_only_when_asked_for(shown):
    _, panel = shown
    assert not [layer for layer in panel.map.layers if hasattr(layer, "url")]
    panel._show_tiles(True)
    assert "OpenStreetMap" in panel.map.layers[0].attribution
    panel._show_tiles(False)
    assert not [layer for layer in panel.map.layers if hasattr(layer, "url")]


def test_tracks_from_batches_of_any_size():
    rows = records()["positions"]
    whole, parts = Tracks(), Tracks()
    one = whole.take(rows)
    legs = {}
    for start in range(0, len(rows), 13):
        for van, more in parts.take(rows[start : start + 13]).legs.items():
            legs.setdefault(van, []).extend(more)
    assert (parts.where, parts.doing, legs) == (whole.where, whole.doing, one.legs)
