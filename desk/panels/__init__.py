"""Panels: what a person clicks, as widgets over control and analysis. Each can be shown again at any time."""

from typing import Any
from weakref import WeakKeyDictionary

from desk.panels.agents import AgentsPanel
from desk.panels.ticket import TicketPanel

_shown: WeakKeyDictionary[Any, dict[type, Any]] = WeakKeyDictionary()


def agents(desk: Any) -> AgentsPanel:
    """One card a process, with Kill, and the chaos monkey's switch. Asked again it is the same panel, once more."""
    return _panel(desk, AgentsPanel)


def ticket(desk: Any) -> TicketPanel:
    """Open tickets, answer questions with Approve or Decline, follow a timeline. Asked again: the same, once more."""
    return _panel(desk, TicketPanel)


def _panel(desk: Any, kind: type) -> Any:
    made = _shown.setdefault(desk, {})
    if kind not in made:
        made[kind] = kind(desk)
    return made[kind]
