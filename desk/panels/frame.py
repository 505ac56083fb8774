"""What every panel has: a title, cards below it, one line for what went wrong. Updated in place, never redrawn."""

import asyncio
from collections.abc import Sequence
from html import escape

import ipywidgets as widgets

from desk.panels.style import CSS, block

GRID = "12px"
LINGER = 20.0
"""Seconds for which a panel shows why a click did nothing."""


class Line(widgets.HTML):
    """A piece of panel HTML that only sends what changed."""

    def say(self, body: str) -> None:
        """Show this; the same again sends nothing."""
        html = block(body)
        if self.value != html:  # type: ignore[has-type]
            self.value = html


class Panel(widgets.VBox):
    """A titled panel. `problem(sentence)` shows what is wrong until it is taken away, `slip` for a while."""

    def __init__(self, title: str, children: Sequence[widgets.Widget]) -> None:
        self._title, self._trouble = title, ""
        self._problem = Line()
        self._problem.layout.display = "none"
        head = widgets.HTML(CSS + block(f'<span class="desk-title">{escape(title)}</span>'))
        super().__init__([head, *children, self._problem], layout=widgets.Layout(grid_gap=GRID, padding=GRID))
        self.add_class("desk-panel")

    def problem(self, sentence: str) -> None:
        """One sentence in the panel; an empty one takes it away."""
        self._trouble = sentence
        self._problem.say(f'<span class="desk-error">{escape(sentence)}</span>')
        visible(self._problem, bool(sentence))

    def slip(self, sentence: str) -> None:
        """What came of a click. It goes by itself: later it would be read as what is the matter now."""
        self.problem(sentence)
        asyncio.get_running_loop().call_later(LINGER, self._forget, sentence)

    def _forget(self, sentence: str) -> None:
        if sentence and self._trouble == sentence:
            self.problem("")

    def __repr__(self) -> str:
        return self._title


def visible(widget: widgets.Widget, yes: bool) -> None:
    """Show or hide a widget; the same again sends nothing."""
    display = None if yes else "none"
    if widget.layout.display != display:
        widget.layout.display = display


def row(children: Sequence[widgets.Widget]) -> widgets.Box:
    """Side by side on the grid, wrapping where it is narrow."""
    layout = widgets.Layout(display="flex", flex_flow="row wrap", grid_gap=GRID, align_items="center")
    return widgets.Box(list(children), layout=layout)


def grid(children: Sequence[widgets.Widget], narrowest: str) -> widgets.GridBox:
    """Cards of one width beside each other, as many as fit."""
    columns = f"repeat(auto-fill, minmax({narrowest}, 1fr))"
    layout = widgets.Layout(grid_template_columns=columns, grid_gap=GRID, width="100%")
    return widgets.GridBox(list(children), layout=layout)


def card(children: Sequence[widgets.Widget], width: str = "auto") -> widgets.VBox:
    """A plain framed card."""
    box = widgets.VBox(list(children), layout=widgets.Layout(grid_gap="6px", width=width))
    box.add_class("desk-card")
    return box


def button(label: str, style: str = "", tooltip: str = "", width: str = "96px") -> widgets.Button:
    """A button of the house size; style as in ipywidgets ("danger", "success", "")."""
    return widgets.Button(
        description=label, button_style=style, tooltip=tooltip, layout=widgets.Layout(width=width)
    )
