"""The layers of the live map: streets, stops, vans, trails, the rest of a round, a closed road. Widgets, no logic."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

import ipyleaflet as leaflet

from desk.analysis.palette import BLUE, GREEN, GREY, PURPLE, VERMILLION, colour_of_van
from desk.analysis.streets import roads, streets
from desk.delivery.roads import DEPOT, Place, Point

STOPS = {
    "planned": (BLUE, 0.15, "to come"),
    "ordered": (PURPLE, 0.15, "ordered today"),
    "delivered": (GREEN, 1.0, "delivered"),
    "failed": (VERMILLION, 1.0, "nobody home"),
    "returned": (VERMILLION, 0.15, "back at the depot"),
    "": (GREY, 0.35, ""),
}
"""State of a stop -> colour, how filled, in words. "" is a customer who has not ordered."""

CSS = """<style>
.desk-map .leaflet-container { background: var(--jp-layout-color0); font: inherit; border-radius: 6px; }
.desk-map .leaflet-div-icon { background: none; border: none; transition: transform .45s linear; }
.desk-map .leaflet-zoom-anim .leaflet-div-icon { transition: transform .25s cubic-bezier(0, 0, .25, 1); }
.desk-van { width: 26px; height: 26px; border-radius: 13px; border: 2px solid #fff; color: #fff; text-align: center;
  font: 600 13px/22px var(--jp-ui-font-family); background: var(--desk-colour); box-sizing: border-box; }
.desk-van.stopped, .desk-van.parked { border: 3px solid #000; line-height: 20px; }
.desk-van .word { position: absolute; left: 30px; top: 4px; padding: 0 6px; border-radius: 8px; font-size: 12px;
  line-height: 16px; color: #000; background: #fff; border: 1px solid #000; white-space: nowrap; }
.desk-depot { width: 16px; height: 16px; background: var(--jp-ui-font-color1); }
.desk-closed { color: #fff; background: #D55E00; border: 2px solid #fff; border-radius: 4px; width: 22px; height: 22px;
  text-align: center; font: 700 14px/18px var(--jp-ui-font-family); box-sizing: border-box; }
.desk-legend { display: flex; flex-wrap: wrap; gap: 4px 16px; }
.desk-legend i { display: inline-block; width: 10px; height: 10px; border-radius: 6px; margin-right: 6px;
  border: 2px solid var(--desk-colour); vertical-align: -1px; }
</style>"""


def legend() -> str:
    """What the colours of stops mean, as HTML."""
    parts = [
        f'<span><i style="--desk-colour:{colour};background:{colour if filled == 1 else "none"}"></i>{words}</span>'
        for colour, filled, words in STOPS.values()
        if words
    ]
    return f'<div class="desk-legend desk-soft">{"".join(parts)}</div>'


def ground() -> leaflet.GeoJSON:
    """All streets as one layer."""
    lines = {"type": "MultiLineString", "coordinates": [list(map(list, street)) for street in streets()]}
    return leaflet.GeoJSON(
        data={"type": "Feature", "properties": {}, "geometry": lines},
        style={"color": "#9E9E9E", "weight": 1.4, "opacity": 0.8, "fill": False},
    )


def tiles() -> leaflet.TileLayer:
    """Map tiles, for whoever is online and wants them."""
    return leaflet.TileLayer(
        url="https://tile.openstreetmap.org/{z}/{x}/{y}.png",
        attribution='&copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors',
        max_zoom=19,
    )


def stop(place: Place) -> leaflet.CircleMarker:
    """A customer's stop, nothing having happened there."""
    mark = leaflet.CircleMarker(location=there((place.lon, place.lat)), radius=6, weight=2)
    paint(mark, "")
    return mark


def paint(mark: leaflet.CircleMarker, state: str) -> None:
    """Show a stop's state; the same again sends nothing."""
    colour, filled, _ = STOPS.get(state, STOPS[""])
    with mark.hold_sync():
        mark.color = mark.fill_color = colour
        mark.fill_opacity = filled


def van(name: str, doing: str) -> leaflet.DivIcon:
    """A van by its number; what keeps it from driving stands beside it."""
    off = doing if doing in ("stopped", "parked") else ""
    word = f'<span class="word">{off}</span>' if off else ""
    number = escape(name.rpartition("-")[2])
    html = f'<div class="desk-van {off}" style="--desk-colour:{colour_of_van(name)}">{number}{word}</div>'
    return leaflet.DivIcon(html=html, icon_size=[26, 26], icon_anchor=[13, 13])


def mark(point: Point, icon: leaflet.DivIcon, *, above: int = 0) -> leaflet.Marker:
    """An icon at a place."""
    return leaflet.Marker(location=there(point), icon=icon, draggable=False, z_index_offset=above)


def depot(place: Place) -> leaflet.Marker:
    """The depot."""
    icon = leaflet.DivIcon(html='<div class="desk-depot"></div>', icon_size=[16, 16], icon_anchor=[8, 8])
    return mark((place.lon, place.lat), icon)


def driven(name: str, legs: Iterable[tuple[str, str]]) -> leaflet.Polyline:
    """Legs a van has completed. Sent once, never again."""
    lines = [path(a, b) for a, b in legs]
    return leaflet.Polyline(locations=lines, color=colour_of_van(name), weight=4, opacity=0.55, fill=False)


def ahead(name: str) -> leaflet.Polyline:
    """The rest of a van's round; its `locations` follow the round."""
    return leaflet.Polyline(
        locations=[], color=colour_of_van(name), weight=3, opacity=0.95, dash_array="2, 7", fill=False
    )


def rest(at: str, drops: Sequence[str]) -> list[list[list[float]]]:
    """The way from a place through these drops and home, leg by leg."""
    places = [at, *drops, DEPOT]
    return [path(a, b) for a, b in pairwise(places) if a != b]


def closed(line: Sequence[Point]) -> leaflet.LayerGroup:
    """A closed piece of road, with a sign where it begins."""
    icon = leaflet.DivIcon(html='<div class="desk-closed">✕</div>', icon_size=[22, 22], icon_anchor=[11, 11])
    way = leaflet.Polyline(
        locations=[there(point) for point in line], color=VERMILLION, weight=8, opacity=0.7, fill=False
    )
    return leaflet.LayerGroup(layers=[way, mark(line[0], icon)])


def path(a: str, b: str) -> list[list[float]]:
    """The road from a to b as Leaflet wants it."""
    return [there(point) for point in roads().path(a, b)]


def there(point: Point) -> list[float]:
    """(lon, lat) as Leaflet wants it."""
    return [round(point[1], 5), round(point[0], 5)]
