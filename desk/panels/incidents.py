"""The header: the five incidents, which van they happen to, and how many vans drive."""

from typing import Any

import ipywidgets as widgets

from desk.control.fleet import FEWEST, MOST
from desk.delivery.incidents import INCIDENTS, TITLES
from desk.panels.follow import Follow, background
from desk.panels.frame import Line, Panel, button, row
from desk.panels.press import Press

BUSIEST = "the busiest van"


class IncidentsPanel(Panel):
    """One button an incident, a slider for the vans."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._van = widgets.Dropdown(options=[BUSIEST], layout=widgets.Layout(width="150px"))
        self._said = Line()
        self._slider = widgets.IntSlider(
            value=FEWEST, min=FEWEST, max=MOST, description="vans", continuous_update=False,
            layout=widgets.Layout(width="260px"), style={"description_width": "36px"},
        )  # fmt: skip
        self._slider.add_class("desk-vans")
        buttons = [self._incident(what) for what in INCIDENTS]
        super().__init__("Incidents", [row([*buttons, self._van, self._slider]), self._said])
        for what, pressed in zip(INCIDENTS, buttons, strict=True):
            Press(pressed, lambda what=what: self._trigger(what), self.slip)
        self._showing = False
        self._slider.observe(self._moved, "value")
        self._set_vans = background(self._vans, self.slip)
        self._follow = Follow(desk, self.refresh, self.problem)

    def _incident(self, what: str) -> widgets.Button:
        title = TITLES[what]
        pressed = button(title[0].upper() + title[1:], "warning", width="158px")
        pressed.add_class(f"desk-incident-{what}")
        return pressed

    async def refresh(self) -> None:
        """Show which vans there are and how many drive."""
        rounds = await self._desk.rounds()
        driving = sorted(van for van, round_ in rounds.items() if not round_.parked)
        if list(self._van.options) != [BUSIEST, *driving]:
            chosen = self._van.value
            self._van.options = [BUSIEST, *driving]
            self._van.value = chosen if chosen in driving else BUSIEST
        if driving and self._slider.value != max(FEWEST, len(driving)):
            self._showing = True  # shown, not asked for
            self._slider.value = max(FEWEST, len(driving))
            self._showing = False

    async def _trigger(self, what: str) -> None:
        van = "" if self._van.value == BUSIEST or what == "sms_down" else self._van.value
        incident = await self._desk.incident(what, van)
        self._said.say(f'<span class="desk-soft">{incident}: {TITLES[what]}</span>')

    def _moved(self, _change: Any) -> None:
        if not self._showing:
            self._set_vans()

    async def _vans(self) -> None:
        self._said.say(f'<span class="desk-soft">{await self._desk.vans(self._slider.value)}</span>')

    def __repr__(self) -> str:
        return "Incidents: " + ", ".join(TITLES[what] for what in INCIDENTS)
