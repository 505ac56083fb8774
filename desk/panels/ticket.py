"""The ticket panel: open a ticket by scenario, answer what the desk asks a person, follow one ticket's timeline."""

from html import escape
from typing import Any

import ipywidgets as widgets

from desk.analysis.story import DEATHS
from desk.analysis.timeline import Timeline, marked, who
from desk.control.questions import Question
from desk.panels.frame import Line, Panel, button, card, row, visible
from desk.panels.press import Press
from desk.panels.style import name
from desk.support.tickets import SCENARIOS


class PromptCard:
    """One question to the person at the desk: Approve or Decline."""

    def __init__(self, desk: Any, question: Question, panel: Panel) -> None:
        words = Line()
        words.say(f"<b>{escape(question.ticket)}</b> {escape(question.text)}")
        approve, decline = button("Approve", "success"), button("Decline")
        ticket = question.ticket
        Press(approve, lambda: desk.approve(ticket, by="person"), panel.slip)
        Press(decline, lambda: desk.decline(ticket, by="person"), panel.slip)
        self.box = card([words, row([approve, decline])])


class TicketPanel(Panel):
    """Everything a person at the desk does, over the coroutines of desk.control; it follows the events topic."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._prompts: dict[str, PromptCard] = {}
        self._scenario = widgets.Dropdown(options=list(SCENARIOS), layout=widgets.Layout(width="168px"))
        open_ticket = button("Open ticket", "primary", "Write to the desk as a customer", width="120px")
        self._ticket = widgets.Dropdown(options=[], layout=widgets.Layout(width="120px"))
        self._asks = row([])
        self._story = Line()
        top = row([self._scenario, open_ticket, self._ticket])
        super().__init__("Tickets", [top, self._asks, self._story])
        Press(open_ticket, self._open, self.slip)
        self._ticket.observe(lambda _change: self._show_story(), "value")
        desk.listen(lambda _events: self.refresh())
        desk.hear(self.problem)
        self.refresh()

    def refresh(self) -> None:
        """Show what the log says now."""
        known = list(self._ticket.options)
        new = [t for t in dict.fromkeys(e.get("ticket") for e in self._desk.events()) if t and t not in known]
        if new:
            self._ticket.options = [*known, *new]
            self._ticket.value = new[-1]
        self._show_prompts()
        self._show_story()

    def _show_prompts(self) -> None:
        waiting = {question.handoff: question for question in self._desk.waiting()}
        if list(waiting) == list(self._prompts):
            return
        self._prompts = {
            key: self._prompts.get(key) or PromptCard(self._desk, question, self)
            for key, question in waiting.items()
        }
        self._asks.children = [prompt.box for prompt in self._prompts.values()]
        visible(self._asks, bool(waiting))

    def _show_story(self) -> None:
        ticket = self._ticket.value
        visible(self._story, bool(ticket))
        if ticket:
            self._story.say(story_html(Timeline.of(self._desk.events(), ticket)))

    async def _open(self) -> None:
        await self._desk.open_ticket(self._scenario.value)

    def __repr__(self) -> str:
        return f"Tickets: {len(self._ticket.options)} opened, {len(self._prompts)} waiting for a person"


def story_html(timeline: Timeline) -> str:
    """The timeline as a panel shows it: seconds since the first event, who, what, the words."""
    rows = []
    for event in timeline.events:
        kind = event["kind"]
        seconds = max(0.0, event["at"] - timeline.events[0]["at"])
        rows.append(
            f'<tr class="{"death" if kind in DEATHS else escape(kind)}"><td class="desk-number">{seconds:.2f} s</td>'
            f'<td class="who">{name(who(event))}</td><td class="kind">{marked(kind)}</td>'
            f"<td>{escape(event.get('text') or '')}</td></tr>"
        )
    return f'<table class="desk-log">{"".join(rows)}</table>'
