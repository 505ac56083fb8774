"""What waits for a person: bills to decide on, and messages parked after their retries ran out."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from desk.control.fleet_reading import Prompt
from desk.delivery.rates import dollars
from desk.panels.follow import Follow
from desk.panels.frame import Line, Panel, button, card, row, visible
from desk.panels.press import Press
from desk.wording import counted

_MOST = 4
"""Parked messages shown one by one."""
_NOTHING = '<span class="desk-soft">{}</span>'


class ApprovalsPanel(Panel):
    """The newest question about each bill, with Approve and Decline."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._cards: dict[tuple[str, str], widgets.Widget] = {}
        self._nothing, self._row = Line(), row([])
        self._nothing.say(_NOTHING.format("Nothing to decide."))
        super().__init__("Approvals", [self._nothing, self._row])
        self._follow = Follow(desk, self.refresh, self.problem)

    async def refresh(self) -> None:
        """Show the questions that wait now; a card that stays is left alone."""
        waiting = {(p.incident, p.text): p for p in self._desk.waiting()}
        if list(waiting) != list(self._cards):
            self._cards = {key: self._cards.get(key) or self._card(p) for key, p in waiting.items()}
            self._row.children = list(self._cards.values())
        visible(self._nothing, not waiting)
        visible(self._row, bool(waiting))

    def _card(self, prompt: Prompt) -> widgets.Widget:
        words = Line()
        words.say(f"<b>{escape(prompt.incident)}: hold {dollars(prompt.hold)}</b><br>{escape(prompt.text)}")
        approve, decline = button("Approve", "success"), button("Decline")
        approve.add_class("desk-approve")
        Press(approve, lambda: self._desk.approve(prompt.incident), self.slip)
        Press(decline, lambda: self._desk.decline(prompt.incident), self.slip)
        return card([words, row([approve, decline])])

    def __repr__(self) -> str:
        return "Approvals"


class ParkedPanel(Panel):
    """The dead letters on the desk, and one button that mends the gateway and sends them all again."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._letters = Line()
        self._fix = button(
            "Fix and redrive", "success", "Mend the SMS gateway, send every message again", "140px"
        )
        self._fix.add_class("desk-redrive")
        super().__init__("Parked messages", [self._letters, row([self._fix])])
        self._press = Press(self._fix, desk.fix_and_redrive, self.slip)
        self._follow = Follow(desk, self.refresh, self.problem)

    async def refresh(self) -> None:
        """Show what is parked now."""
        parked = await self._desk.parked()
        rows = "".join(
            f'<tr><td class="kind">{escape(incident)}</td><td>{escape(letter["step"])}</td>'
            f'<td class="desk-number">{counted(letter["capsule"].get("attempts", 0), "attempt")}</td>'
            f"<td>{escape(str(letter['capsule'].get('detail', '')))}</td></tr>"
            for incident, letter in sorted(parked.items())[:_MOST]
        )
        if len(parked) > _MOST:
            rows += f'<tr><td class="desk-soft">and {len(parked) - _MOST} more</td></tr>'
        table = f'<table class="desk-log">{rows}</table>'
        self._letters.say(table if parked else _NOTHING.format("No message is parked."))
        self._press.allow(bool(parked) or gateway_down(self._desk.events()))

    def __repr__(self) -> str:
        return "Parked messages"


def gateway_down(events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the SMS gateway has failed and nobody has mended it since."""
    down = False
    for event in events:
        if event["kind"] == "fixed":
            down = False
        elif event["kind"] == "incident" and event.get("state") == "sms_down":
            down = True
    return down
