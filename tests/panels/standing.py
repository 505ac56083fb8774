"""A stand-in for a running desk: what panels ask of one, with events and processes the test chooses."""

from collections.abc import Callable
from typing import Any

from desk.control.events import Event
from desk.control.questions import Question, waiting
from desk.supervisor.client import ProcessState


class Supervisor:
    """States, and the callbacks that hear of changes."""

    def __init__(self) -> None:
        self.states: dict[str, ProcessState] = {}
        self.monkey = False
        self._listeners: list[Callable[[ProcessState], None]] = []

    def listen(self, callback: Callable[[ProcessState], None]) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def tell(self, name: str, pid: int, state: str = "up", deaths: int = 0, error: str = "") -> None:
        """Say that a process changed."""
        self.states[name] = ProcessState(name, pid, state, deaths, error)
        for callback in self._listeners:
            callback(self.states[name])


class StandIn:
    """A desk that notes what it is asked to do."""

    def __init__(self) -> None:
        self.supervisor = Supervisor()
        self.done: list[tuple[Any, ...]] = []
        self.trouble: Exception | None = None
        self.hearers: list[Callable[[str], None]] = []
        self._rows: list[Event] = []
        self._listeners: list[Callable[[list[Event]], None]] = []

    @property
    def processes(self) -> dict[str, ProcessState]:
        return self.supervisor.states

    def events(self, ticket: str | None = None) -> list[Event]:
        return [e for e in self._rows if ticket is None or e.get("ticket") == ticket]

    def waiting(self) -> list[Question]:
        return waiting(self._rows)

    def listen(self, callback: Callable[[list[Event]], None]) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def hear(self, callback: Callable[[str], None]) -> Callable[[], None]:
        self.hearers.append(callback)
        return lambda: self.hearers.remove(callback)

    def write(self, *events: dict[str, Any]) -> None:
        """Let events come in, as from the log."""
        new = [Event(event) for event in events]
        self._rows += new
        for callback in self._listeners:
            callback(new)

    async def kill(self, name: str, by: str = "code") -> int:
        return self._note("kill", name, by)

    async def chaos(self, on: bool) -> int:
        self._note("chaos", on)
        self.supervisor.monkey = on
        for name in list(self.supervisor.states):
            self.supervisor.tell(name, self.supervisor.states[name].pid)
        return 0

    async def open_ticket(self, scenario: str) -> int:
        return self._note("open", scenario)

    async def approve(self, ticket: str, by: str = "code") -> int:
        return self._note("approve", ticket, by)

    async def decline(self, ticket: str, by: str = "code") -> int:
        return self._note("decline", ticket, by)

    def _note(self, *what: Any) -> int:
        if self.trouble:
            raise self.trouble
        self.done.append(what)
        return 0
