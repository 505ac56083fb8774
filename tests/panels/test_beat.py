"""What runs on a beat goes on whatever happens, and says in one sentence what is the matter."""

import asyncio

import laser_sdk as ls
import pytest

from desk.control import DeskError
from desk.panels import follow
from desk.panels.live_map import MapPanel
from desk.panels.readers import ReadersPanel
from tests.panels.fleets import PaperFleet

PANELS = pytest.mark.parametrize("kind", [MapPanel, ReadersPanel])


async def beats(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Beats that follow each other at once."""
    sleep = asyncio.sleep
    monkeypatch.setattr(follow.asyncio, "sleep", lambda _seconds: sleep(0))


@PANELS
async def test_a_panel_outlives_whatever_goes_wrong_and_says_it(kind):
    fleet = PaperFleet()
    fleet.trouble = RuntimeError("A question about the day has more than 1000 answers.")
    panel = kind(fleet)
    await beats()
    assert "has more than 1000 answers." in panel._problem.value
    fleet.trouble = DeskError("The stack did not answer in time.")  # the desk still runs
    await beats()
    assert "The stack did not answer in time." in panel._problem.value
    fleet.trouble = ls.TransportError("Disconnected")
    await beats()
    assert "The stack cannot be reached (Disconnected)." in panel._problem.value
    assert not panel._task.done()
    panel._task.cancel()


@PANELS
async def test_what_the_desk_says_explains_more_than_what_goes_wrong(kind):
    fleet = PaperFleet()
    fleet.trouble = ls.TransportError("Disconnected")
    panel = kind(fleet)
    await beats()
    for hearer in fleet.hearers:
        hearer("The supervisor has ended: start the desk again.")
    await beats()
    assert "The supervisor has ended" in panel._problem.value
    panel._task.cancel()


@PANELS
async def test_a_desk_that_has_stopped_is_said_and_the_panel_rests(kind):
    fleet = PaperFleet()
    fleet.stopped = True
    panel = kind(fleet)
    await panel._task
    assert "This desk has stopped" in panel._problem.value


async def test_trouble_goes_when_it_is_over():
    fleet, said, works = PaperFleet(), [], [RuntimeError("Broken."), None]

    async def work() -> None:
        if works and (error := works.pop(0)):
            raise error

    task = follow.Beat(fleet, work, said.append, every=0.1, still="Still", stopped="Stopped.").task
    await beats()
    assert said == ["Still: Broken.", ""]
    task.cancel()
