"""The header: the five incidents, which van they happen to, and how many vans drive."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from desk.control.fleet import FEWEST, MOST
from desk.delivery.incidents import INCIDENTS, TITLES
from desk.panels.follow import Follow, background
from desk.panels.frame import Line, Panel, button, row, visible
from desk.panels.press import Press

BUSIEST = "the busiest van"


class IncidentsPanel(Panel):
    """One button an incident, a slider for the vans."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._van = widgets.Dropdown(options=[BUSIEST], layout=widgets.Layout(width="150px"))
        self._said, self._leaving = Line(), Line()
        self._slider = widgets.IntSlider(
            value=FEWEST, min=FEWEST, max=MOST, description="vans", continuous_update=False,
            layout=widgets.Layout(width="260px"), style={"description_width": "36px"},
        )  # fmt: skip
        self._slider.add_class("desk-vans")
        buttons = [self._incident(what) for what in INCIDENTS]
        super().__init__("Incidents", [row([*buttons, self._van, self._slider]), self._said, self._leaving])
        for what, pressed in zip(INCIDENTS, buttons, strict=True):
            Press(pressed, lambda what=what: self._trigger(what), self.slip)
        self._showing, self._asking = False, 0
        self._newest = ""
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
        out = sorted(leaving(self._desk.events()) & set(driving))
        stay = max(FEWEST, len(driving) - len(out))
        if driving and self._slider.value != stay and not self._asking:
            self._showing = True  # shown, not asked for
            self._slider.value = stay
            self._showing = False
        over = f"{', '.join(out)} must hand over first" if out else ""
        self._leaving.say(f'<span class="desk-soft">{over}</span>')
        visible(self._leaving, bool(out))
        for event in self._desk.events(self._newest) if self._newest else ():
            if event["kind"] == "moot":
                self._say(f"{self._newest}: {event['text']}")

    async def _trigger(self, what: str) -> None:
        van = "" if self._van.value == BUSIEST or what == "sms_down" else self._van.value
        self._newest = await self._desk.incident(what, van)
        self._say(f"{self._newest}: {TITLES[what]}")
        self._follow.soon()

    def _say(self, words: str) -> None:
        self._said.say(f'<span class="desk-soft">{escape(words)}</span>')

    def _moved(self, _change: Any) -> None:
        if not self._showing:
            self._set_vans()

    async def _vans(self) -> None:
        self._asking += 1  # until it is granted the log knows of no van that leaves
        try:
            self._say(await self._desk.vans(self._slider.value))
        finally:
            self._asking -= 1
            self._newest = ""
            self._follow.soon()

    def __repr__(self) -> str:
        return "Incidents: " + ", ".join(TITLES[what] for what in INCIDENTS)


def leaving(events: Iterable[Mapping[str, Any]]) -> set[str]:
    """The vans that somebody has taken off the road and that have yet to hand over their drops."""
    going: dict[str, str] = {}
    for event in events:
        if event["kind"] == "incident" and event.get("state") == "removed":
            going[event["van"]] = event["incident"]
        elif event["kind"] == "van_parked":
            going.pop(event["van"], None)
        elif event["kind"] == "moot" and event["incident"] == going.get(event["van"]):
            del going[event["van"]]
    return set(going)
