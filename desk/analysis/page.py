"""The exported page: one HTML file with the whole day in it and a slider, which needs no server and no network."""

import json
from collections.abc import Sequence
from itertools import pairwise
from math import cos, radians
from pathlib import Path
from typing import Any

from desk.analysis.frames import Frame
from desk.analysis.palette import OF_AGENT, colour_of_van, ink_on
from desk.analysis.streets import places, roads, streets
from desk.analysis.whereabouts import bounds, side_by_side, spots, trail
from desk.delivery.roads import DEPOT, Point

_TEMPLATE = Path(__file__).with_name("rewind.html")
_PLACE = "/*DAY*/null"
_HEIGHT = 900  # of the drawing, in its own units
_DISC = 31  # from one van to the next where they stand side by side


def page(day: str, frames: Sequence[Frame], read: int) -> str:
    """The whole page."""
    data = json.dumps(facts(day, frames, read), ensure_ascii=False, separators=(",", ":"))
    return _TEMPLATE.read_text(encoding="utf-8").replace(_PLACE, data.replace("</", "<\\/"))


def facts(day: str, frames: Sequence[Frame], read: int) -> dict[str, Any]:
    """What the page's script draws from. Points are in the drawing's own units, a leg is stored once."""
    vans = sorted({van for frame in frames for van in frame.vans})
    legs = {van: _legs(frames, van) for van in vans}
    known = places()
    west, east, south, north = bounds()
    width = _HEIGHT * (east - west) * cos(radians((south + north) / 2)) / (north - south)
    return {
        "day": day,
        "read": read,
        "width": round(width),
        "height": _HEIGHT,
        "roads": roads().attribution,
        "streets": [_drawn(street) for street in streets()],
        "depot": _drawn([(known[DEPOT].lon, known[DEPOT].lat)])[0],
        "stops": {
            place.id: {
                "xy": _drawn([(place.lon, place.lat)])[0],
                "name": f"{place.name}, {place.street}, {place.suburb}",
                "states": _states(frames, place.id),
            }
            for place in known.values()
            if place.id != DEPOT
        },
        "colours": {van: colour_of_van(van) for van in vans},
        "inks": {van: ink_on(colour_of_van(van)) for van in vans},
        "agents": OF_AGENT,
        "legs": {van: [_drawn(roads().path(a, b)) for a, b, _ in legs[van]] for van in vans},
        "frames": [_frame(frames, number, legs) for number in range(len(frames))],
    }


def _legs(frames: Sequence[Frame], van: str) -> list[tuple[str, str, int]]:
    """(from, to, minute it was there) of every leg the van has completed."""
    spots = [(frame.vans[van].at, frame.minute) for frame in frames if van in frame.vans]
    return [(a, b, minute) for (a, _), (b, minute) in pairwise(spots) if a != b]


def _frame(
    frames: Sequence[Frame], number: int, legs: dict[str, list[tuple[str, str, int]]]
) -> dict[str, Any]:
    frame = frames[number]
    vans, aside = {}, side_by_side(spots(frame))
    for van, spot in frame.vans.items():
        done = [minute for _, _, minute in legs[van] if minute <= number]
        since = frames[done[-1] : number + 1] if done else frames[: number + 1]  # only the leg it is on now
        x, y = _drawn([(spot.lon, spot.lat)])[0]
        made, failed = frame.delivered[van], frame.failed[van]
        vans[van] = [
            *(
                x + _DISC * aside[van].right,
                y + _DISC * aside[van].down,
                spot.status,
                round(spot.metres / 1000, 1),
                made,
                failed,
                len(done),
            ),
            _drawn(trail(since, van)),
            aside[van].word,
        ]
    events = [[e.get("agent") or "", e["kind"], e.get("text") or ""] for e in frame.events]
    return {"vans": vans, "agents": dict(frame.agents), "events": events}


def _states(frames: Sequence[Frame], stop: str) -> list[tuple[int, str]]:
    """(minute, state) whenever the stop's state changed."""
    found: list[tuple[int, str]] = []
    for frame in frames:
        state = frame.stops.get(stop, "")
        if state != (found[-1][1] if found else ""):
            found.append((frame.minute, state))
    return found


def _drawn(path: Sequence[Point]) -> list[list[float]]:
    """Degrees to the drawing's units: x to the right, y down."""
    west, _, south, north = bounds()
    scale = _HEIGHT / (north - south)
    shrink = cos(radians((south + north) / 2))
    return [[round((lon - west) * scale * shrink, 1), round((north - lat) * scale, 1)] for lon, lat in path]
