"""The agents of the delivery desk: as every agents panel, and which step each holds, Quarantine and Reinstate."""

from html import escape
from typing import Any

from desk.analysis.frames import Story
from desk.control.fleet import AGENTS
from desk.panels.agents import AgentCard, AgentsPanel
from desk.panels.frame import Line, button, row
from desk.panels.press import Press
from desk.supervisor.client import ProcessState
from desk.wording import counted

_OUT, _IN = "Quarantine", "Reinstate"


class FleetAgentCard(AgentCard):
    """One process: Kill, what it holds, and for an agent of the registry whether it gets new work."""

    def __init__(self, desk: Any, agent: str, panel: "FleetAgentsPanel") -> None:
        super().__init__(desk, agent, panel)
        self._desk, self._agent, self._quarantined = desk, agent, False
        self._holds = Line()
        self._serve = button(_OUT, tooltip=f"Send {agent} no new work; its process keeps running")
        self._serve.add_class(f"desk-quarantine-{agent}")
        Press(self._serve, self._switch, panel.slip)
        facts, kill = self.box.children
        buttons = [kill, self._serve] if AGENTS[agent][1] else [kill]
        below = row(buttons)
        below.add_class("desk-buttons")
        self.box.children = [facts, self._holds, below]

    def tell(self, holds: str, quarantined: bool) -> None:
        """Show what it has in hand and whether it gets new work."""
        self._quarantined = quarantined
        words = (
            f'<span class="desk-chip down">quarantined</span> {escape(holds)}'
            if quarantined
            else escape(holds)
        )
        self._holds.say(f'<div class="desk-soft desk-holds" title="{escape(holds)}">{words}</div>')
        label = _IN if quarantined else _OUT
        if self._serve.description != label:
            self._serve.description = label

    async def _switch(self) -> None:
        await (self._desk.reinstate if self._quarantined else self._desk.quarantine)(self._agent)


class FleetAgentsPanel(AgentsPanel):
    """Cards for every process, with what the log says it holds."""

    def __init__(self, desk: Any) -> None:
        self._story, self._read, self._out = Story(), 0, set[str]()
        super().__init__(desk)
        desk.listen(lambda _events: self._tell())
        desk.hear(self.problem)
        self._tell()

    def show(self, state: ProcessState) -> None:
        """Bring one process's card up to date."""
        if state.name in AGENTS and state.name not in self._cards:
            self._cards[state.name] = FleetAgentCard(self._desk, state.name, self)
            self._row.children = [card.box for name in AGENTS if (card := self._cards.get(name))]
        super().show(state)

    def _tell(self) -> None:
        for event in self._desk.events()[self._read :]:
            self._read += 1
            self._story.take(event)
            if event["kind"] in ("quarantined", "reinstated"):
                (self._out.add if event["kind"] == "quarantined" else self._out.discard)(event["agent"])
        for name, card in self._cards.items():
            holds = self._story.holds.get(name, {})
            open_ = counted(len(self._story.open), "open exception") if name == "dispatch" else ""
            card.tell("; ".join(words for key, words in holds.items() if key) or open_, name in self._out)
