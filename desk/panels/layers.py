"""The layers of the live map: streets, stops, vans, trails, the rest of a round, a closed road. Widgets, no logic."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from urllib.parse import quote

import ipyleaflet as leaflet

from desk.analysis.palette import BLUE, GREEN, GREY, PURPLE, VERMILLION, colour_of_van, ink_on
from desk.analysis.streets import roads, streets
from desk.analysis.whereabouts import Stand
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

WAYS, MARKS, VANS = "ways", "marks", "vans"
"""Panes above the streets: the ways of vans, the stops, the vans. What changes in one draws nothing else anew."""
PANES = {
    WAYS: {"zIndex": 410},
    MARKS: {"zIndex": 420},
    VANS: {"zIndex": 640, "pointerEvents": "none"},  # below popups
}

CSS = """<style>
.desk-map .leaflet-container { background: var(--jp-layout-color0); font: inherit; border-radius: 6px; }
.desk-map .leaflet-div-icon { background: none; border: none; }
.desk-map .leaflet-vans-pane img { width: 180px !important; height: 82px !important; margin: -13px 0 0 -13px;
  transform-origin: 13px 13px; will-change: transform; }
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
    mark = leaflet.CircleMarker(location=there((place.lon, place.lat)), radius=6, weight=2, pane=MARKS)
    paint(mark, "")
    return mark


def paint(mark: leaflet.CircleMarker, state: str) -> None:
    """Show a stop's state; the same again sends nothing."""
    colour, filled, _ = STOPS.get(state, STOPS[""])
    with mark.hold_sync():
        mark.color = mark.fill_color = colour
        mark.fill_opacity = filled


def van(name: str, off: bool, stand: Stand) -> str:
    """The picture of a van, as a URL: its number in its colour, a black edge round one that is kept from driving.

    `stand`: where it is drawn, at most three discs to the right of its place and two below it, and the word beside it.
    """
    number, colour = escape(name.rpartition("-")[2]), colour_of_van(name)
    edge = 'stroke="#000" stroke-width="3"' if off else 'stroke="#fff" stroke-width="2"'
    word = (
        f'<rect x="30.5" y="4.5" width="62" height="17" rx="8" fill="#fff" stroke="#000"/>'
        f'<text x="61.5" y="17" font-size="12">{stand.word}</text>'
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 180 82" font-family="sans-serif" text-anchor="middle">'
        f'<g transform="translate({28 * stand.right} {28 * stand.down})">'
        f'<circle cx="13" cy="13" r="11.5" fill="{colour}" {edge}/>'
        f'<text x="13" y="17.5" font-size="13" font-weight="600" fill="{ink_on(colour)}">{number}</text>'
        f"{word if stand.word else ''}</g></svg>"
    )
    return f"data:image/svg+xml,{quote(svg)}"


def moving(point: Point, picture: str) -> leaflet.ImageOverlay:
    """A picture that `put` moves: centred on its place, of one size whatever the zoom.

    Not a Marker, which answers every move with a message of its own: the kernel turns busy and idle for it, and
    JupyterLab redraws what shows that. Those answers cost more than half of all that following eight vans cost.
    """
    return leaflet.ImageOverlay(url=picture, bounds=_at(point), pane=VANS)


def put(layer: leaflet.ImageOverlay, point: Point) -> None:
    """Move it there."""
    layer.bounds = _at(point)


def _at(point: Point) -> list[list[float]]:
    return [there(point)] * 2


def mark(point: Point, icon: leaflet.DivIcon) -> leaflet.Marker:
    """An icon that stays at a place."""
    return leaflet.Marker(location=there(point), icon=icon, draggable=False)


def depot(place: Place) -> leaflet.Marker:
    """The depot."""
    icon = leaflet.DivIcon(html='<div class="desk-depot"></div>', icon_size=[16, 16], icon_anchor=[8, 8])
    return mark((place.lon, place.lat), icon)


def driven(name: str, legs: Iterable[tuple[str, str]]) -> leaflet.Polyline:
    """Legs a van has completed. Sent once, never again."""
    lines = [path(a, b) for a, b in legs]
    return leaflet.Polyline(
        locations=lines, color=colour_of_van(name), weight=4, opacity=0.55, fill=False, pane=WAYS
    )


def ahead(name: str) -> leaflet.Polyline:
    """The rest of a van's round; its `locations` follow the round."""
    return leaflet.Polyline(
        locations=[],
        color=colour_of_van(name),
        weight=3,
        opacity=0.95,
        dash_array="2, 7",
        fill=False,
        pane=WAYS,
    )


def rest(at: str, drops: Sequence[str]) -> list[list[list[float]]]:
    """The way from a place through these drops and home, leg by leg."""
    places = [at, *drops, DEPOT]
    return [path(a, b) for a, b in pairwise(places) if a != b]


def closed(line: Sequence[Point]) -> leaflet.LayerGroup:
    """A closed piece of road, with a sign where it begins."""
    icon = leaflet.DivIcon(html='<div class="desk-closed">✕</div>', icon_size=[22, 22], icon_anchor=[11, 11])
    way = leaflet.Polyline(
        locations=[there(point) for point in line],
        color=VERMILLION,
        weight=8,
        opacity=0.7,
        fill=False,
        pane=WAYS,
    )
    return leaflet.LayerGroup(layers=[way, mark(line[0], icon)])


def path(a: str, b: str) -> list[list[float]]:
    """The road from a to b as Leaflet wants it."""
    return [there(point) for point in roads().path(a, b)]


def there(point: Point) -> list[float]:
    """(lon, lat) as Leaflet wants it."""
    return [round(point[1], 5), round(point[0], 5)]
