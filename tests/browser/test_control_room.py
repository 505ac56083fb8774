"""A person's way through the control room: five incidents, three decisions, two maps that differ, the rewind slider.

With DESK_PICTURES=1 the screenshot becomes docs/control-room.png (light) and build/control-room-dark.png.
"""

import io
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Locator, Page, expect

from desk.delivery.incidents import TITLES
from tests.analysis.tuesday import tuesday
from tests.browser.conftest import Opener
from tests.browser.lab import until

ROOM = "control_room.ipynb"
ROOT = Path(__file__).parents[2]
PICTURES = {
    "JupyterLab Light": ROOT / "docs" / "control-room.png",
    "JupyterLab Dark": ROOT / "build" / "control-room-dark.png",
}
THEMES = list(PICTURES) if os.environ.get("DESK_PICTURES") else ["JupyterLab Light"]
PATIENCE = 60_000
VANS = ".leaflet-vans-pane img"
EVENING = "await fleet.speed(8)"


@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", THEMES)
def test_five_incidents_and_three_clicks(theme: str, open_notebook: Opener) -> None:
    lesson = open_notebook(ROOM, theme=theme, size=(1600, 1300), change=hurry)
    page = lesson.page
    lesson.run("from desk.course import")
    room = lesson.run("panel.control_room(fleet)")
    city = room.locator(".leaflet-container")
    expect(room.locator(VANS)).to_have_count(4)
    before = picture(city)

    room.locator(".desk-incident-closure").click()
    closure = room.locator(".desk-cards .desk-card", has_text="road closure")
    expect(closure).to_contain_text("holding", timeout=PATIENCE)
    holder = "routing-1" if "routing-1" in closure.locator("tr.now").inner_text() else "routing-2"
    room.locator(f".desk-kill-{holder}").click()
    expect(agent(room, holder)).to_contain_text("1 death")
    other = "routing-2" if holder == "routing-1" else "routing-1"
    room.locator(f".desk-quarantine-{other}").click()
    expect(agent(room, other)).to_contain_text("quarantined")
    expect(room.locator(f".desk-quarantine-{other}")).to_have_text("Reinstate")

    for what in ("sms_down", "nobody_home", "unreachable", "overbilled"):
        room.locator(f".desk-incident-{what}").click()
        expect(room).to_contain_text(f": {TITLES[what]}")
    expect(room.locator(".desk-redrive")).to_be_enabled(timeout=PATIENCE)
    expect(room).to_contain_text("SmsDown", timeout=PATIENCE)
    if os.environ.get("DESK_PICTURES"):
        page.keyboard.press("Control+b")
        room.locator(".jp-OutputArea").first.evaluate("area => area.scrollIntoView()")
        PICTURES[theme].parent.mkdir(exist_ok=True)
        page.screenshot(path=PICTURES[theme])
    room.locator(".desk-redrive").click()
    expect(room).to_contain_text("No message is parked.", timeout=PATIENCE)
    until_differing(city, before, 0.01)  # vans drive on, ways are drawn anew
    # A van that moves is told to the page; were the page to answer, the kernel would never rest.
    assert not [answer for answer in lesson.sent if '"event":"move"' in answer]

    lesson.run(EVENING)
    approve = room.locator(".desk-approve")
    expect(approve).to_be_visible(timeout=2 * PATIENCE)
    approve.click()
    expect(room).to_contain_text("Nothing to decide.", timeout=PATIENCE)

    room.locator(".leaflet-marks-pane path").first.click()
    expect(room.locator(".leaflet-popup-content")).to_be_visible()
    until(page, lambda: within(room.locator(".leaflet-popup-content"), city))  # it may still slide into view
    assert within(room.locator(".desk-depot"), city)  # the map has not gone elsewhere

    room.get_by_role("tab", name="Rewind").click()
    room.locator(".desk-rewind").click()
    player = room.frame_locator(".desk-player")
    expect(player.locator("#clock")).to_have_text("09:00")
    begin = picture(room.locator(".desk-player"))
    drag(player.locator("#minute"), 0.5)
    expect(player.locator("#clock")).not_to_have_text("09:00")
    until_differing(room.locator(".desk-player"), begin, 0.005)
    lesson.run("await fleet.stop()")


@pytest.mark.browser
def test_the_exported_page_works_from_disk_without_a_network(
    window: Callable[[int, int], Page], tmp_path: Path
) -> None:
    exported = tuesday().export(tmp_path / "out")
    page = window(1400, 1000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.context.set_offline(True)
    page.goto((exported.folder / "rewind.html").as_uri())
    expect(page.locator("#clock")).to_have_text("09:00")
    first = picture(page.locator("#map"))
    drag(page.locator("#minute"), 1.0)
    expect(page.locator("#clock")).to_have_text("10:29")
    delivered = page.locator("#vans tr td:nth-child(3)").all_inner_texts()
    assert sum(map(int, delivered)) == 22
    until_differing(page.locator("#map"), first, 0.005)
    page.locator("#play").click()
    expect(page.locator("#clock")).not_to_have_text("10:29")
    assert not wrong
    assert [url for url in asked if not url.startswith("file:")] == []


def hurry(notebook: Path) -> None:
    """No orders, time to click on a busy machine, and a cell that lets the evening come."""
    book = nbformat.read(notebook, as_version=4)
    start = next(cell for cell in book.cells if "await start(" in cell.source)
    start.source = start.source.replace("vans=4", "vans=4, orders=0")
    start.source = start.source.replace("step_pause=8", "step_pause=12")
    code = next(
        cell for cell in book.cells if "await fleet.incident(" in cell.source and cell.cell_type == "code"
    )
    code.source = EVENING
    nbformat.write(book, notebook)


def agent(room: Locator, name: str) -> Locator:
    """The card of an agent."""
    return room.locator(".desk-card", has=room.page.locator(f".desk-kill-{name}"))


def within(part: Locator, whole: Locator) -> bool:
    """Whether all of a part is inside of the whole."""
    inner, outer = part.bounding_box(), whole.bounding_box()
    assert inner and outer
    return all(
        outer[at] <= inner[at] and inner[at] + inner[size] <= outer[at] + outer[size]
        for at, size in (("x", "width"), ("y", "height"))
    )


def drag(slider: Locator, share: float) -> None:
    """Take a slider's handle, which is at its left end, and put it down at this share of its way."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box
    mouse, middle = slider.page.mouse, box["y"] + box["height"] / 2
    mouse.move(box["x"] + 8, middle)
    mouse.down()
    mouse.move(box["x"] + 8 + share * (box["width"] - 10), middle, steps=8)
    mouse.up()


def picture(of: Locator) -> Image.Image:
    """A screenshot."""
    return Image.open(io.BytesIO(of.screenshot())).convert("RGB")


def until_differing(of: Locator, before: Image.Image, share: float) -> None:
    """Wait until what is shown differs from `before` in more than this share of its points."""
    until(of.page, lambda: differing(before, picture(of)) > share)


def differing(one: Image.Image, other: Image.Image) -> float:
    """The share of points in which two pictures of one size differ clearly."""
    difference = ImageChops.difference(one, other.resize(one.size)).convert("L")
    histogram = difference.histogram()
    return sum(histogram[40:]) / sum(histogram)
