"""The live map: vans on their way, stops by state, what is left of each round, closed roads.

It reads positions with a cursor of its own and the rounds from key-value state, like any other client. Four times a
second it sends what has changed and nothing else: a trail is sent leg by leg, once.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

import ipyleaflet as leaflet
import ipywidgets as widgets

from desk.analysis.streets import places, roads
from desk.analysis.whereabouts import OFF, Stand, bounds, piece, side_by_side
from desk.delivery.clock import time_of_day, window_text
from desk.delivery.layout import POSITIONS
from desk.delivery.ours import report
from desk.delivery.planning.round import DEPOT, Round, arrivals
from desk.delivery.roads import Point, load_legs
from desk.panels import layers
from desk.panels.follow import Beat
from desk.panels.frame import Line, Panel, row
from desk.panels.tracks import Closure, Glide, Tracks
from desk.wording import counted, passed_over

BEAT = 0.25
"""Seconds between two updates."""
_WAITING = ("idle", "parked")
"""What a van does that stays where it is: it can be drawn beside its place."""
_HEIGHT = "600px"
_ZOOM = 13.75
_STOPPED = "This desk has stopped: the map shows where everything was."


class MapPanel(Panel):
    """Follows one fleet from when it is made until the desk stops, shown or not."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._tracks, self._glide = Tracks(), Glide()
        self._metres = load_legs().metres
        self._cursor: Any = None
        self._stale, self._foreign = True, 0
        self._rounds: Mapping[str, Round] = {}
        self._states: dict[str, Mapping[str, Any]] = {}
        self._vans: dict[str, leaflet.ImageOverlay] = {}
        self._ahead: dict[str, leaflet.Polyline] = {}
        self._closed: dict[str, tuple[Closure, leaflet.LayerGroup]] = {}
        self._tiles: leaflet.TileLayer | None = None
        self._stops = {p.id: layers.stop(p) for p in places().values() if p.id != DEPOT}
        self._popup_text = widgets.HTML()
        self._popup = leaflet.Popup(child=self._popup_text, close_button=True, auto_close=True)
        self.map = self._empty_map()
        self._clock = Line()
        ask = widgets.Checkbox(
            description="tiles from OpenStreetMap (needs a network)", indent=False, layout={"width": "auto"}
        )
        ask.observe(lambda change: self._show_tiles(change["new"]), "value")
        note = widgets.HTML(layers.CSS + layers.legend())
        credit = widgets.HTML(f'<span class="desk-soft">Roads {escape(roads().attribution)}</span>')
        super().__init__("Map", [row([self._clock, note]), self.map, row([credit, ask])])
        self.add_class("desk-map")
        desk.listen(lambda _events: self._changed())
        still = "The map stands still"  # when the stack is away: it comes back, and the cursor is still right
        self._task = Beat(desk, self.update, self.problem, every=BEAT, still=still, stopped=_STOPPED).task

    def _empty_map(self) -> leaflet.Map:
        west, east, south, north = bounds()
        for stop, mark in self._stops.items():
            mark.on_click(lambda stop=stop, **_: self._tell(stop))
        self._group = {name: leaflet.LayerGroup() for name in ("trails", "closed", "ahead", "vans")}
        return leaflet.Map(
            center=((south + north) / 2 + 0.001, (west + east) / 2),
            zoom=_ZOOM,
            zoom_snap=0.25,
            scroll_wheel_zoom=True,
            panes=layers.PANES,
            layers=[
                layers.ground(),
                *(self._group[name] for name in ("trails", "closed", "ahead")),
                layers.depot(places()[DEPOT]),
                leaflet.LayerGroup(layers=list(self._stops.values())),
                self._group["vans"],
            ],
            layout=widgets.Layout(height=_HEIGHT),
        )

    def _changed(self) -> None:
        self._stale = True

    # -- following

    async def update(self) -> None:
        """Bring the map up to date, once."""
        if self._cursor is None:
            self._cursor = self._desk.laser.topic(POSITIONS).replay()
        moved: dict[str, Point] = {}
        while messages := await self._cursor.poll():
            reports = [said for message in messages if (said := report(message))]
            self._foreign += len(messages) - len(reports)
            moved |= self._show_changes(reports)
        for name, point in self._glide.beat(moved, self._tracks).items():
            layers.put(self._vans[name], point)
        if self._stale:
            self._stale = False
            self._rounds, states = await self._desk.rounds(), await self._desk.stops()
            self._show_stops(states)
            self._show_rounds()
            self._open_roads()

    def _show_changes(self, reports: list[dict[str, Any]]) -> dict[str, Point]:
        """Show what these reports change. Returns the vans that moved, and whereto."""
        changes = self._tracks.take(reports)
        vans = len([v for v in self._tracks.doing.values() if v not in ("parked", "idle")])
        words = f"<b>{time_of_day(self._tracks.minute)}</b> {counted(vans, 'van')} on the road"
        self._clock.say("; ".join(filter(None, (words, passed_over(self._foreign)))))
        for name, legs in changes.legs.items():
            self._group["trails"].add(layers.driven(name, legs))
        if changes.doing:
            self._show_doing()
        for closure in changes.closures:
            self._close_road(closure)
        return changes.moved

    def _show_doing(self) -> None:
        """Draw every van as what it does; those that wait at one place stand side by side."""
        where, all_ = self._tracks.where, sorted(self._tracks.doing.items())
        waiting = side_by_side({name: (where[name], doing) for name, doing in all_ if doing in _WAITING})
        for name, doing in all_:
            alone = Stand(0, 0, doing if doing in OFF else "")
            picture = layers.van(name, doing in OFF, waiting.get(name, alone))
            if name in self._vans:
                self._vans[name].url = picture
            else:
                self._vans[name] = layers.moving(where[name], picture)
                self._group["vans"].add(self._vans[name])

    def _show_stops(self, states: dict[str, Mapping[str, Any]]) -> None:
        for stop, value in states.items():
            if self._states.get(stop) != value and stop in self._stops:
                layers.paint(self._stops[stop], value["state"])
        self._states = states

    def _show_rounds(self) -> None:
        for name, round_ in self._rounds.items():
            if name not in self._ahead:
                self._ahead[name] = layers.ahead(name)
                self._group["ahead"].add(self._ahead[name])
            rest = layers.rest(round_.at, round_.drops) if not round_.parked else []
            if self._ahead[name].locations != rest:
                self._ahead[name].locations = rest

    def _close_road(self, closure: Closure) -> None:
        if closure.incident in self._closed:
            return
        way = roads().path(closure.at, closure.stop)
        line = [closure.here, *way[len(piece(way, closure.here)) :]]
        self._closed[closure.incident] = closure, layers.closed(line)
        self._group["closed"].add(self._closed[closure.incident][1])

    def _open_roads(self) -> None:
        """A closed road opens again when the drop behind it has been made, or given up."""
        for closure, layer in self._closed.values():
            waiting = any(closure.stop in round_.drops for round_ in self._rounds.values())
            if not waiting and layer in self._group["closed"].layers:
                self._group["closed"].remove(layer)

    # -- what a person does

    def _tell(self, stop: str) -> None:
        """Open the popup of a stop."""
        place, value = places()[stop], self._states.get(stop, {})
        state = layers.STOPS.get(value.get("state", ""), layers.STOPS[""])[2] or "has not ordered"
        lines = [f"<b>{escape(place.name)}</b>", f"{escape(place.street)}, {escape(place.suburb)}", state]
        for name, round_ in self._rounds.items():
            if stop in round_.open_drops:
                when = arrivals(round_, self._tracks.minute, self._metres)[stop]
                lines.append(f"{name}, {window_text(when)}")
        self._popup_text.value = "<br>".join(lines)
        self._popup.location = self._stops[stop].location  # from the start: the map moves to where it opens
        if self._popup not in self.map.layers:
            self.map.add(self._popup)
        self._popup.open_popup(self._popup.location)

    def _show_tiles(self, wanted: bool) -> None:
        if wanted and self._tiles is None:
            self._tiles = layers.tiles()
            self.map.layers = (self._tiles, *self.map.layers)
        elif not wanted and self._tiles is not None:
            self.map.remove(self._tiles)
            self._tiles = None

    def __repr__(self) -> str:
        return "Map"
