"""Panels: what a person clicks, as widgets over control and analysis. Each can be shown again at any time."""

from typing import Any
from weakref import WeakKeyDictionary

from desk.control.arguments import shown
from desk.control.errors import DeskError, awaited
from desk.control.fleet import FleetDesk
from desk.control.support import SupportDesk
from desk.panels.agents import AgentsPanel
from desk.panels.desk_work import ApprovalsPanel, ParkedPanel
from desk.panels.events import EventsPanel
from desk.panels.exceptions import ExceptionsPanel
from desk.panels.fleet_agents import FleetAgentsPanel
from desk.panels.incidents import IncidentsPanel
from desk.panels.readers import ReadersPanel
from desk.panels.rewind import RewindPanel
from desk.panels.ticket import TicketPanel

_shown: WeakKeyDictionary[Any, dict[type, Any]] = WeakKeyDictionary()


def agents(desk: Any) -> AgentsPanel:
    """One card a process, with Kill, and the chaos monkey's switch. Asked again it is the same panel, once more.

    On the delivery desk a card also says which step its agent holds, and has Quarantine.
    """
    return _panel(desk, FleetAgentsPanel if isinstance(desk, FleetDesk) else AgentsPanel)


def ticket(desk: Any) -> TicketPanel:
    """Open tickets, answer questions with Approve or Decline, follow a timeline. Asked again: the same, once more."""
    return _panel(desk, TicketPanel)


def map(fleet: FleetDesk) -> Any:
    """Vans, stops, rounds and closed roads as they are now."""
    from desk.panels.live_map import MapPanel  # ipyleaflet: only for whoever wants a map

    return _panel(fleet, MapPanel)


def incidents(fleet: FleetDesk) -> IncidentsPanel:
    """The five incidents, and how many vans drive."""
    return _panel(fleet, IncidentsPanel)


def exceptions(fleet: FleetDesk) -> ExceptionsPanel:
    """What is being handled: the steps, and who has them."""
    return _panel(fleet, ExceptionsPanel)


def approvals(fleet: FleetDesk) -> ApprovalsPanel:
    """Bills to decide on, with Approve and Decline."""
    return _panel(fleet, ApprovalsPanel)


def parked(fleet: FleetDesk) -> ParkedPanel:
    """Messages whose retries ran out, with Fix and redrive."""
    return _panel(fleet, ParkedPanel)


def readers(fleet: FleetDesk) -> ReadersPanel:
    """The desk's questions to its views, asked again when a view changes."""
    return _panel(fleet, ReadersPanel)


def events(fleet: FleetDesk) -> EventsPanel:
    """What happened, newest first, with filters."""
    return _panel(fleet, EventsPanel)


def rewind(fleet: FleetDesk) -> RewindPanel:
    """The day minute by minute, from the log, with a slider."""
    return _panel(fleet, RewindPanel)


def control_room(fleet: FleetDesk) -> Any:
    """All of them."""
    from desk.panels.room import ControlRoom

    return ControlRoom(lambda kind: _panel(fleet, kind))


def _panel(desk: Any, kind: type) -> Any:
    wrong = FleetDesk if kind is TicketPanel else SupportDesk
    if not hasattr(awaited(desk), "events"):
        raise DeskError(f"A panel shows a running desk, not {shown(desk)}.")
    if isinstance(desk, wrong) and kind is not AgentsPanel:
        this, other = ("support", "delivery") if wrong is FleetDesk else ("delivery", "support")
        raise DeskError(f"This panel is of the {this} desk, not of the {other} desk.")
    made = _shown.setdefault(desk, {})
    if kind not in made:
        made[kind] = kind(desk)
    return made[kind]
