"""Rewind: the day minute by minute with a slider, read anew from the log whenever a person asks.

The player is the exported page itself, so it goes on working in a notebook whose kernel has ended.
"""

from html import escape
from typing import Any

import ipywidgets as widgets

from desk.analysis.page import page
from desk.analysis.rewind import Rewind, rewind
from desk.panels.frame import Line, Panel, button, row
from desk.panels.press import Press

_HEIGHT = 760  # CSS pixels


class RewindPanel(Panel):
    """A button that reads the log, and the player below it."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._said = Line()
        self._player = widgets.HTML()
        read = button("Rewind", "primary", "Read the day from the log, from its first record on")
        read.add_class("desk-rewind")
        super().__init__("Rewind", [row([read, self._said]), self._player])
        Press(read, self.read, self.slip)

    async def read(self) -> None:
        """Read the day so far with two fresh cursors, and show it."""
        self.show(await rewind(self._desk.laser, self._desk.day))

    def show(self, day: Rewind) -> None:
        """Show a day that has been read."""
        self._said.say(f'<span class="desk-soft">{escape(repr(day))}</span>')
        self._player.value = (
            f'<iframe class="desk-player" style="width:100%;height:{_HEIGHT}px;border:0" '
            f'srcdoc="{escape(page(day.day, day.minutes, day.read), quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        return "Rewind"
