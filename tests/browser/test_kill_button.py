"""A person's way through notebook 02: the real Kill button in the hold, the replay in the timeline, Approve.

With DESK_PICTURES=1 the screenshot becomes docs/kill.png (light) and build/kill-dark.png.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.lab import until

LESSON = "02_kill_the_resolver.ipynb"
ROOT = Path(__file__).parents[2]
PICTURES = {
    "JupyterLab Light": ROOT / "docs" / "kill.png",
    "JupyterLab Dark": ROOT / "build" / "kill-dark.png",
}
THEMES = list(PICTURES) if os.environ.get("DESK_PICTURES") else ["JupyterLab Light"]


def hold_longer(notebook: Path) -> None:
    """However slow the machine, Kill is pressed in the hold; after the kill nobody waits for the rest of it."""
    book = nbformat.read(notebook, as_version=4)
    start = next(cell for cell in book.cells if "await start(" in cell.source)
    assert "policy_pause=12" in start.source
    start.source = start.source.replace("policy_pause=12", "policy_pause=60")
    nbformat.write(book, notebook)


@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", THEMES)
def test_kill_pressed_in_the_hold_shows_as_a_replay(theme: str, open_notebook: Opener) -> None:
    change = None if os.environ.get("DESK_PICTURES") else hold_longer
    lesson = open_notebook(LESSON, theme=theme, change=change)
    lesson.run("from desk.course import")
    agents = lesson.run("panel.agents(support)")
    lesson.run('support.open_ticket("duplicate")')
    waiting = lesson.start('await support.until(ticket, "asked")')

    kill = agents.locator(".desk-kill-resolver")
    assert kill.inner_text() == "Kill"
    kill.dblclick()  # the second click, in flight, does nothing
    lesson.finished(waiting)
    expect(agents.locator(".desk-card", has_text="resolver")).to_contain_text("1 death")

    ticket = lesson.run("panel.ticket(support)")
    ticket.get_by_role("button", name="Approve").click()
    story = ticket.locator(".desk-log")
    story.get_by_text("closed", exact=True).first.wait_for()
    expect(ticket.get_by_role("button", name="Approve")).to_have_count(0)

    table = expect(lesson.run("timeline(support, ticket)\n"))
    table.to_contain_text(re.compile(r"killed\s+resolver \(SIGKILL, by button\)"), use_inner_text=True)
    table.to_contain_text("from checkpoint, 2 turn(s) since: order_lookup, its result", use_inner_text=True)
    plot = lesson.run("timeline(support, ticket).plot()")
    until(lesson.page, lambda: plot.locator("img").evaluate("picture => picture.naturalWidth") > 1000)

    if os.environ.get("DESK_PICTURES"):
        lesson.below(ticket)
        lesson.below(agents)
        lesson.tidy(640, 250)
        plot.scroll_into_view_if_needed()
        PICTURES[theme].parent.mkdir(exist_ok=True)
        lesson.page.screenshot(path=PICTURES[theme])
    lesson.run("await support.stop()")
