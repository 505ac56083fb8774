"""The control room: every panel of the delivery desk in one place."""

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from desk.panels.desk_work import ApprovalsPanel, ParkedPanel
from desk.panels.events import EventsPanel
from desk.panels.exceptions import ExceptionsPanel
from desk.panels.fleet_agents import FleetAgentsPanel
from desk.panels.incidents import IncidentsPanel
from desk.panels.live_map import MapPanel
from desk.panels.readers import ReadersPanel
from desk.panels.rewind import RewindPanel


class ControlRoom(widgets.VBox):
    """Incidents above; the map beside what waits for a person; below, what everybody does and did."""

    def __init__(self, panel: Callable[[type], Any]) -> None:
        waiting = [panel(kind) for kind in (ApprovalsPanel, ParkedPanel, ExceptionsPanel)]
        for one in waiting:
            one.layout.flex = "0 0 auto"
        beside = widgets.VBox(
            waiting,
            layout=widgets.Layout(flex="1 1 340px", width="auto", max_height="720px", overflow="auto"),
        )
        there = widgets.Box([panel(MapPanel)], layout=widgets.Layout(flex="2 1 560px", width="auto"))
        panel(MapPanel).layout.width = "100%"
        middle = widgets.Box(
            [there, beside], layout=widgets.Layout(display="flex", flex_flow="row wrap", width="100%")
        )
        below = widgets.Tab([panel(kind) for kind in (EventsPanel, ReadersPanel, RewindPanel)])
        for number, title in enumerate(("Timeline", "Readers", "Rewind")):
            below.set_title(number, title)
        super().__init__([panel(IncidentsPanel), panel(FleetAgentsPanel), middle, below])

    def __repr__(self) -> str:
        return "Control room"
