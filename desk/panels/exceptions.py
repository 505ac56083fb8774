"""Exception cards: what is being handled, which step each is at, and which copy of routing has it."""

from collections.abc import Iterable
from html import escape
from typing import Any

from desk.analysis.handling import ORDER, Handling, Step, handlings
from desk.delivery.clock import time_of_day
from desk.delivery.incidents import TITLES
from desk.panels.follow import Follow
from desk.panels.frame import Line, Panel
from desk.panels.style import name
from desk.wording import counted

_CARDS = 6
"""Problems shown as cards: the open ones, then the last closed."""
_LINES = 3
"""Orders shown below them, the newest."""
_CSS = """<style>
.desk-cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(280px, 1fr)); gap: 12px; }
.desk-cards .desk-card.closed { opacity: .65; }
.desk-steps { width: 100%; border-collapse: collapse; margin: 6px 0; table-layout: fixed; }
.desk-steps td { padding: 1px 12px 1px 0; border: 0; text-align: left; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
.desk-orders:not(:empty) { margin-top: 12px; }
.desk-steps tr.now td { font-weight: 600; }
</style>"""
_SIGNS = {"waiting": "·", "done": "✓", "lost": "✕", "replayed": "○", "parked": "!"}
_OTHER = "▸"


class ExceptionsPanel(Panel):
    """A fold of the events topic, redrawn in place."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._cards = Line()
        super().__init__("Exceptions", [self._cards])
        self._follow = Follow(desk, self.refresh, self.problem)

    async def refresh(self) -> None:
        """Show what the log says now."""
        self._cards.say(_CSS + cards(handlings(self._desk.events())))

    def __repr__(self) -> str:
        return "Exceptions"


def cards(found: Iterable[Handling]) -> str:
    """Problems as cards, orders as lines."""
    found = list(found)
    problems = [h for h in found if h.kind != ORDER]
    newest = sorted(problems, key=lambda h: (not h.open, -problems.index(h)))
    more = len([h for h in newest[_CARDS:] if h.open])
    orders = [h for h in found if h.kind == ORDER][-_LINES:][::-1]
    if not found:
        return '<span class="desk-soft">Nothing has happened yet.</span>'
    lines = "".join(f"<div>{escape(h.incident)} {_order(h)}</div>" for h in orders)
    hidden = f"<div>and {counted(more, 'open exception')} more</div>" if more else ""
    shown = "".join(map(_card, newest[:_CARDS]))
    return f'<div class="desk-cards">{shown}</div><div class="desk-soft desk-orders">{hidden}{lines}</div>'


def _card(h: Handling) -> str:
    title = TITLES.get(h.kind, {"missed": "nobody home", "bill": "the carrier's bill"}.get(h.kind, h.kind))
    when = f"{time_of_day(h.minute)} {'open' if h.open else 'closed'}"
    steps = "".join(_step(step) for step in h.steps)
    return (
        f'<div class="desk-card {"" if h.open else "closed"}"><div class="desk-row">'
        f"<b>{escape(title)}{', ' + escape(h.van) if h.van else ''}</b>"
        f'<span class="desk-soft">{escape(h.incident)}, {when}</span></div>'
        f'<table class="desk-steps">{steps}</table><div>{escape(h.text)}</div></div>'
    )


def _step(step: Step) -> str:
    now = "now" if step.state not in ("waiting", "done") else ""
    who = name(step.agent) if step.agent else ""
    sign = _SIGNS.get(step.state, _OTHER)
    return f'<tr class="{now}"><td>{sign} {escape(step.name)}</td><td>{escape(step.state)}</td><td>{who}</td></tr>'


def _order(h: Handling) -> str:
    now = next((f"{s.name}: {s.state} {s.agent}" for s in h.steps if s.state not in ("waiting", "done")), "")
    return escape(now or (h.text if not h.open else "order: waiting"))
