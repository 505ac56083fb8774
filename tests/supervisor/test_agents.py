"""What an agent's process is: light, on its own, with its own log; and what the fork server is."""

import json
import sys

import psutil
import pytest

from desk.settings import Settings
from desk.supervisor.client import Supervisor, SupervisorError
from tests.supervisor.running import below, probe

HEAVY = {"pandas", "numpy", "matplotlib", "ipywidgets", "ipyleaflet", "IPython", "anthropic"}


async def test_agents_load_nothing_heavy(start):
    desk = await start(("a", "confess"))
    confession = await desk.event("confession")
    assert "laser_sdk" in confession["modules"]
    assert not HEAVY & set(confession["modules"])


async def test_agents_stand_alone(start):
    desk = await start(("a", "confess"))
    confession = await desk.event("confession")
    assert confession["session"] == confession["pid"]
    assert confession["interrupt"]


async def test_each_process_has_its_own_log(start):
    desk = await start(("a", "confess"), ("b", "crashing"))
    await desk.state("a", "stopped")
    assert (desk.folder / "logs" / "a.err").read_text() == "on stdout\non stderr\n"
    assert (desk.folder / "logs" / "b.err").read_text() == ""


async def test_settings_travel_in_the_spec(start):
    desk = await start()
    settings = Settings().having(policy_pause=8, api_key="key")
    spec = probe("a", desk.folder, "settings", baseline="1")
    await desk.supervisor.launch(type(spec)(**{**vars(spec), "settings": settings}))
    event = await desk.event("told")
    assert (event["pause"], event["secret"], event["baseline"], event["other"]) == (8.0, "key", True, False)


async def test_no_secret_is_in_a_command_line(start):
    desk = await start(("a", "idle"))
    password = desk.supervisor.connection.rpartition("@")[0].partition(":")[2]
    processes = [psutil.Process(desk.supervisor.pid), *below(desk.supervisor.pid)]
    assert len(processes) == 4
    assert not [p for p in processes if password in json.dumps(p.cmdline())]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory map")
async def test_fork_server_has_one_thread_and_no_connection(start):
    desk = await start(("a", "idle"))
    await desk.supervisor.kill("a")
    await desk.state("a", "up")
    [server] = [p for p in psutil.Process(desk.supervisor.pid).children() if p.children()]
    assert server.num_threads() == 1
    assert server.net_connections() == []
    assert any("laser_sdk" in region.path for region in server.memory_maps())


async def test_a_connection_lost_in_a_handler_loses_no_message(start):
    desk = await start(("a", "lost"))
    await desk.send("a", "t-1")
    finished = await desk.event("finished")
    died = await desk.event("died")
    assert died["pid"] == (await desk.event("began"))["pid"] != finished["pid"]
    assert died["text"] == f"a died (pid {died['pid']}, exit 1): Lost the stack: Disconnected."
    assert await desk.dead_letters() == 0


async def test_an_agent_that_is_refused_says_so(start, tmp_path):
    where = (await start()).supervisor.connection.rpartition("@")[2]
    folder = tmp_path / "other"
    supervisor = await Supervisor.start(folder=folder, embedded=False, connection=f"iggy:wrong-one@{where}")
    sentence = f"a does not stay up: The stack at {where} refused the connection: Invalid credentials"
    try:
        with pytest.raises(SupervisorError, match=sentence):
            await supervisor.launch(probe("a", folder, "idle"))
    finally:
        await supervisor.stop()
