"""A process whose loop is blocked is killed and replaced; one that only waits is left alone."""

import asyncio

import psutil

from tests.supervisor.running import probe


async def test_a_blocked_handler_is_ended_and_its_work_done_by_the_next(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "stuck", block="600", hang_after="2"))
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


async def test_who_was_held_up_for_so_long_leaves_what_it_meant_to_do_to_the_next(start):
    desk = await start()
    await desk.supervisor.launch(probe("a", desk.folder, "stuck", block="3", hang_after="1.5", unwatched="1"))
    await desk.send("a", "t-1")
    died = await desk.event("died")
    assert died["pid"] == (await desk.event("began"))["pid"]
    assert died["text"].endswith("Held up for 3 s: another process may have taken over.")
    assert (await desk.event("finished"))["pid"] != died["pid"]
    assert await desk.dead_letters() == 0
