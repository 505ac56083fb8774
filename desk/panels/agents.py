"""The agents panel: one card a process with its state, its pid and Kill; the chaos monkey's switch below."""

from html import escape
from typing import Any

from desk.panels.frame import Line, Panel, button, card, grid, row
from desk.panels.press import Press
from desk.panels.style import chip, name
from desk.supervisor.client import ProcessState
from desk.wording import counted

STACK = "stack"


class AgentCard:
    """One process."""

    def __init__(self, desk: Any, agent: str, panel: Panel) -> None:
        self._facts = Line()
        kill = button("Kill", "danger", f"SIGKILL {agent}: no cleanup, no chance to save anything")
        kill.add_class(f"desk-kill-{agent}")
        self._press = Press(kill, lambda: desk.kill(agent, by="button"), panel.slip)
        self.box = card([self._facts, kill])
        self.box.add_class("desk-agent")

    def show(self, state: ProcessState) -> None:
        """Bring the card up to date."""
        pid = f"pid {state.pid}" if state.pid else "no process"
        deaths = counted(state.deaths, "death")
        error = f'<div class="desk-error">{escape(state.error)}</div>' if state.error else ""
        self._facts.say(
            f'<div class="desk-row">{name(state.name)}{chip(state.state)}</div><div class="desk-row desk-soft">'
            f'<span>{pid}</span><span class="desk-number">{deaths}</span></div>{error}'
        )
        self._press.allow(bool(state.pid))


class AgentsPanel(Panel):
    """Cards for every process but the stack, kept up to date by the supervisor's word."""

    def __init__(self, desk: Any) -> None:
        self._desk, self._supervisor = desk, desk.supervisor  # of a desk that has stopped, too
        self._cards: dict[str, Any] = {}
        self._row = grid([], "208px")
        self._monkey = button("Start chaos", tooltip="Kill a random agent every few seconds", width="120px")
        self._monkey_says = Line()
        super().__init__("Agents", [self._row, row([self._monkey, self._monkey_says])])
        Press(self._monkey, self._switch_chaos, self.slip)
        self._supervisor.listen(self.show)
        for state in desk.processes.values():
            self.show(state)

    def show(self, state: ProcessState) -> None:
        """Bring one process's card up to date, and the monkey's switch."""
        self._show_monkey()
        if state.name == STACK:
            return
        if state.name not in self._cards:
            self._cards[state.name] = AgentCard(self._desk, state.name, self)
            self._row.children = [*self._row.children, self._cards[state.name].box]
        self._cards[state.name].show(state)

    async def _switch_chaos(self) -> None:
        await self._desk.chaos(not self._supervisor.monkey)

    def _show_monkey(self) -> None:
        loose = self._supervisor.monkey
        label = "Stop chaos" if loose else "Start chaos"
        if self._monkey.description != label:
            self._monkey.description = label
        says = "the chaos monkey kills a random agent every few seconds" if loose else ""
        self._monkey_says.say(f'<span class="desk-soft">{says}</span>')

    def __repr__(self) -> str:
        return "Agents: " + ", ".join(self._cards)
