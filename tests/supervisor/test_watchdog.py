"""A process whose loop is blocked is killed and replaced; one that only waits is left alone."""

import asyncio
import re

import psutil

from tests.supervisor.running import Desk, probe


async def test_a_blocked_handler_is_ended_and_its_work_done_by_the_next(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "stuck", block="600", hang_after="4"))
    await desk.send("a", "t-1")
    began = await desk.event("began")
    killed = await desk.event("killed")
    assert (killed["agent"], killed["pid"], killed["by"]) == ("a", began["pid"], "watchdog")
    finished = await desk.event("finished", ticket="t-1")
    assert finished["pid"] not in (0, began["pid"])
    assert await desk.dead_letters() == 0
    assert not [event for event in desk.seen if event["kind"] == "died"]


async def test_a_stopped_process_is_hung_too(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "idle", hang_after="2"))
    psutil.Process(desk.pid("a")).suspend()
    assert (await desk.event("killed"))["by"] == "watchdog"
    assert await desk.event("agent_up", count=2)


async def test_a_long_hold_is_not_a_hang(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "echo", hang_after="3"))
    await desk.send("a", "t-1", hold=4.5)
    finished = await desk.event("finished", ticket="t-1")
    assert finished["pid"] == (await desk.event("began"))["pid"]
    assert not [event for event in desk.seen if event["kind"] in ("killed", "died")]


async def test_a_supervisor_that_was_held_up_itself_blames_nobody(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "idle", hang_after="2"))
    pid = desk.pid("a")
    supervisor = psutil.Process(desk.supervisor.pid)
    supervisor.suspend()
    await asyncio.sleep(3)
    supervisor.resume()
    await asyncio.sleep(1.5)
    assert desk.pid("a") == pid
    assert not [event for event in desk.seen if event["kind"] == "killed"]


async def test_who_blocks_and_is_not_watched_leaves_what_it_meant_to_do_to_the_next(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "stuck", block="600", hang_after="3", unwatched="1"))
    await desk.send("a", "t-1")
    await left_it_to_the_next(desk)


async def test_who_was_stopped_for_long_leaves_what_it_meant_to_do_to_the_next(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "stuck", hang_after="3", unwatched="1"))
    await desk.send("a", "t-1")
    process = psutil.Process((await desk.event("began"))["pid"])
    while process.status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110 (nothing tells)
        await asyncio.sleep(0.01)
    await asyncio.sleep(4)
    process.resume()
    await left_it_to_the_next(desk)


async def left_it_to_the_next(desk: Desk) -> None:
    died = await desk.event("died")
    assert died["pid"] == (await desk.event("began"))["pid"]
    assert re.search(r"Held up for \d+ s: another process may have taken over\.$", died["text"])
    assert (await desk.event("finished"))["pid"] != died["pid"]
    assert not (desk.folder / "went on").exists()
    assert await desk.dead_letters() == 0
