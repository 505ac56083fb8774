"""Kill, replace, restart, back off: what the owner of a desk relies on."""

import asyncio
import os
import signal

import psutil
import pytest

from desk.supervisor.client import Supervisor, SupervisorError
from tests.supervisor.running import PATIENCE, probe


async def test_agents_say_that_they_are_up(start):
    desk = await start(("a", "echo"), ("b", "idle"))
    for name in ("a", "b"):
        event = await desk.event("agent_up", agent=name)
        assert event["pid"] == desk.pid(name)
        assert event["text"] == f"{name} up (pid {event['pid']})"
        assert desk.supervisor.states[name].state == "up"


async def test_a_killed_agent_is_replaced_and_finishes_its_work(start):
    desk = await start(("a", "echo"))
    await desk.send("a", "t-1", hold=600)
    first = await desk.event("began")
    pid = await desk.supervisor.kill("a", by="button")
    finished = await desk.event("finished")

    assert pid == first["pid"] != finished["pid"]
    assert await desk.dead_letters() == 0
    kinds = [(e["kind"], e["pid"]) for e in desk.seen]
    new = finished["pid"]
    assert kinds == [
        ("agent_up", pid),
        ("began", pid),
        ("killed", pid),
        ("agent_up", new),
        ("began", new),
        ("finished", new),
    ]
    killed = await desk.event("killed")
    assert (killed["agent"], killed["by"]) == ("a", "button")
    assert desk.supervisor.states["a"].deaths == 1


async def test_a_death_nobody_asked_for_is_on_the_log(start):
    desk = await start(("a", "idle"))
    pid = desk.pid("a")
    os.kill(pid, signal.SIGKILL)
    died = await desk.event("died")
    assert (died["agent"], died["pid"]) == ("a", pid)
    assert died["text"] == f"a died (pid {pid}, SIGKILL)"
    assert (await desk.event("agent_up", count=2))["pid"] != pid
    assert not [e for e in desk.seen if e["kind"] == "killed"]


async def test_killing_in_a_row_hits_each_replacement(start):
    desk = await start(("a", "idle"))
    pids = [await desk.supervisor.kill("a") for _ in range(8)]
    assert len(set(pids)) == 8
    await desk.state("a", "up")  # kills are not failures: no back-off
    assert desk.supervisor.states["a"].deaths == 8


async def test_switches_change_one_at_a_time(start):
    desk = await start(("a", "echo"))
    moods = []
    for number, switches in enumerate([{"mood": "good"}, {"other": "1"}, {"mood": None}]):
        await desk.supervisor.restart("a", **switches)
        await desk.send("a", f"t-{number}")
        moods.append((await desk.event("finished", ticket=f"t-{number}")).get("state"))
    assert moods == ["good", "good", None]
    assert not [e for e in desk.seen if e["kind"] in ("killed", "died")]
    assert desk.supervisor.states["a"].deaths == 0


async def test_restart_with_another_module(start):
    desk = await start(("a", "idle"))
    modules = desk.folder / "modules"
    modules.mkdir()
    (modules / "learners.py").write_text(
        "import asyncio\nasync def main(me):\n    await me.up('mine')\n    await asyncio.Event().wait()\n"
    )
    await desk.supervisor.restart("a", module="learners")
    assert await desk.event("agent_up", text="mine")


async def test_keeps_dying_fails_with_its_last_words_and_recovers(start):
    desk = await start(("a", "crashing"), ("b", "idle"))
    broken = desk.folder / "broken"
    broken.touch()
    await desk.supervisor.kill("a")
    await desk.state("a", "failing")
    with pytest.raises(SupervisorError, match="a has no process to kill: it is failing"):
        await desk.supervisor.kill("a")  # now: every few seconds it is tried again
    assert desk.supervisor.states["a"].error == "ValueError: the file is broken"
    assert (await desk.event("died", agent="a", count=5))["text"].endswith("ValueError: the file is broken")
    assert desk.supervisor.states["b"].state == "up"
    broken.unlink()
    await desk.state("a", "up")
    assert desk.supervisor.states["a"].error == ""


async def test_launch_says_why_an_agent_does_not_start(start):
    desk = await start()
    with pytest.raises(
        SupervisorError, match=r"a does not stay up: ModuleNotFoundError: .*nosuch.* \(see .*a\.err\)"
    ):
        await desk.supervisor.launch(probe("a", desk.folder, "nosuch"))


async def test_mistakes_get_one_sentence(start):
    desk = await start(("a", "idle"))
    with pytest.raises(SupervisorError, match="no process named 'resolver': there is stack, a"):
        await desk.supervisor.kill("resolver")
    with pytest.raises(SupervisorError, match="already a process named a"):
        await desk.supervisor.launch(probe("a", desk.folder))
    with pytest.raises(SupervisorError, match="stack has no switches"):
        await desk.supervisor.restart("stack", baseline="1")
    with pytest.raises(SupervisorError, match="choose more than 0"):
        await desk.supervisor.chaos(True, every=0)


async def test_second_owner_is_refused(start, tmp_path):
    await start(("a", "idle"))
    with pytest.raises(SupervisorError, match=r"Another desk \(process \d+\) is using"):
        await Supervisor.start(folder=tmp_path)


async def test_a_folder_is_free_again_after_stop(start, tmp_path):
    desk = await start(("a", "idle"))
    await desk.supervisor.stop()
    again = await Supervisor.start(folder=tmp_path)
    await again.stop()
    await again.stop()


async def test_the_stack_comes_back_where_it_was_and_agents_carry_on(start):
    desk = await start(("a", "echo"))
    await desk.send("a", "t-1", hold=0.5)
    await desk.event("began")
    before = psutil.Process(desk.pid("stack"))
    assert await desk.supervisor.kill("stack") == before.pid
    await desk.state("stack", "up")
    assert desk.pid("stack") != before.pid
    assert await desk.event("finished", ticket="t-1")
    await desk.send("a", "t-2")
    assert await desk.event("finished", ticket="t-2")
    assert (await desk.event("killed"))["agent"] == "stack"
    assert await desk.dead_letters() == 0


async def test_a_frozen_stack_delays_no_kill(start):
    desk = await start(("a", "idle"))
    process = psutil.Process(desk.pid("a"))
    stack = psutil.Process(desk.pid("stack"))
    stack.suspend()
    try:
        async with asyncio.timeout(PATIENCE):  # less than a stack that is stopped needs to answer
            assert await desk.supervisor.kill("a") == process.pid
        process.wait(PATIENCE)
    finally:
        stack.resume()
    killed = await desk.event("killed")  # it was kept, and follows
    assert killed["pid"] == process.pid


async def test_chaos_on_and_off(start):
    desk = await start(("a", "idle"), ("b", "idle"))
    await desk.supervisor.chaos(True, every=0.05, seed=3)
    await desk.event("killed", by="chaos", count=4)
    await desk.supervisor.chaos(False)
    await desk.state("a", "up")
    await desk.state("b", "up")
    pids = {name: desk.pid(name) for name in ("a", "b")}
    by_hand = await desk.supervisor.kill("a")
    await desk.event("killed", by="code", pid=by_hand)
    kills = [e for e in desk.seen if e["kind"] == "killed" and e["by"] == "chaos"]
    assert {e["agent"] for e in kills} <= {"a", "b"}
    # Every announced kill happened, and none came after the monkey was off.
    assert desk.supervisor.states["a"].deaths + desk.supervisor.states["b"].deaths == len(kills) + 1
    assert desk.pid("b") == pids["b"]


async def test_a_main_that_returns_has_done_its_work(start):
    desk = await start(("a", "brief"))
    await desk.state("a", "stopped")
    assert await desk.event("agent_up", agent="a")
    await desk.supervisor.restart("a")
    assert await desk.event("agent_up", agent="a", count=2)
    assert not [e for e in desk.seen if e["kind"] == "died"]


async def test_a_desk_without_the_embedded_stack(start, tmp_path):
    desk = await start()
    elsewhere = tmp_path / "elsewhere"
    supervisor = await Supervisor.start(
        folder=elsewhere, embedded=False, connection=desk.supervisor.connection
    )
    try:
        await supervisor.launch(probe("far", elsewhere, "idle"))
        assert supervisor.states.keys() == {"far"}
        assert (await desk.event("agent_up", agent="far"))["pid"] == supervisor.states["far"].pid
    finally:
        await supervisor.stop()


async def test_no_stack_at_all_is_a_mistake(tmp_path):
    with pytest.raises(SupervisorError, match="connection string is needed"):
        await Supervisor.start(folder=tmp_path, embedded=False)


async def test_the_stack_can_be_restarted(start):
    desk = await start(("a", "echo"))
    before = desk.pid("stack")
    await desk.supervisor.restart("stack")
    assert desk.pid("stack") != before
    await desk.send("a", "t-1")
    assert await desk.event("finished")


async def test_two_restarts_at_once_leave_one_process(start):
    desk = await start(("a", "idle"))
    await asyncio.gather(*(desk.supervisor.restart("a") for _ in range(3)))
    [server] = [p for p in psutil.Process(desk.supervisor.pid).children() if p.children()]
    assert [p.pid for p in server.children()] == [desk.pid("a")]


async def test_an_owner_that_lost_its_supervisor_is_told(start):
    desk = await start(("a", "idle"))
    seen = []
    desk.supervisor.listen(seen.append)
    os.kill(desk.supervisor.pid, signal.SIGKILL)
    with pytest.raises(SupervisorError, match="The supervisor has ended: start the desk again"):
        while True:
            await desk.supervisor.kill("a")
    assert {state.state for state in desk.supervisor.states.values()} == {"stopped"}
    assert {state.name for state in seen} == {"stack", "a"}


async def test_a_kill_whose_death_is_reported_late_returns_when_it_is(start):
    desk = await start(("a", "idle"))
    [server] = [p for p in psutil.Process(desk.supervisor.pid).children() if p.children()]
    server.suspend()  # as on a machine that has no time for it
    try:
        killing = asyncio.create_task(desk.supervisor.kill("a"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(killing), 1.5)
    finally:
        server.resume()
    assert await killing != await desk.supervisor.kill("a")
    assert desk.supervisor.states["a"].deaths == 2
