"""No death above leaves a process behind, and an Interrupt leaves all of them alone."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from tests.supervisor.conftest import ROOT
from tests.supervisor.jupyter import OWN
from tests.supervisor.running import PATIENCE, below, survivors


@pytest.fixture
def owner(tmp_path):
    """A plain Python process that owns a desk, the pids it printed, and all processes below it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.supervisor.owner", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    pids = json.loads(process.stdout.readline())
    processes = below(process.pid)
    assert {pids["supervisor"], pids["stack"], pids["a"], pids["b"]} < {p.pid for p in processes}
    yield process, pids, processes
    process.kill()
    process.wait()
    assert not survivors(processes)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_owner_ends(owner, number):
    process, _, processes = owner
    process.send_signal(number)
    process.wait()
    assert not survivors(processes)


def test_whole_process_group_of_the_owner_is_killed(owner):
    process, _, processes = owner
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not survivors(processes)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a stopped process with its parent")
def test_stopped_agent_goes_too(owner):
    process, pids, processes = owner
    psutil.Process(pids["a"]).suspend()
    process.kill()
    process.wait()
    assert not survivors(processes)


def test_supervisor_is_killed(owner):
    process, pids, processes = owner
    os.kill(pids["supervisor"], signal.SIGKILL)
    assert not survivors(processes)
    assert process.poll() is None


def test_supervisor_is_told_to_end(owner):
    _, pids, processes = owner
    os.kill(pids["supervisor"], signal.SIGTERM)
    assert not survivors(processes)


def test_everybody_has_a_session_of_their_own(owner):
    process, pids, processes = owner
    sessions = {p.pid: os.getsid(p.pid) for p in processes}
    assert all(sessions[pid] == pid for pid in pids.values())
    assert os.getsid(process.pid) not in sessions.values()


async def test_fork_server_is_killed(start):
    desk = await start(("a", "idle"), ("b", "idle"))
    [server] = [p for p in psutil.Process(desk.supervisor.pid).children() if p.children()]
    children = server.children()
    assert {p.pid for p in children} == {desk.pid("a"), desk.pid("b")}
    server.kill()
    assert not survivors(children)
    for name in ("a", "b"):  # both are replaced
        died = await desk.event("died", agent=name)
        assert died["text"] == f"{name} died (pid {died['pid']}, with the fork server)"
        assert await desk.event("agent_up", agent=name, count=2)
    assert await desk.supervisor.kill("a") not in {p.pid for p in children}


@pytest.fixture
def kernel(tmp_path):
    """A notebook kernel in which a cell has started a desk; its manager, its client, the processes below it."""
    manager, client = start_new_kernel(cwd=str(ROOT))
    _execute(client, OWN.format(folder=str(tmp_path)))
    processes = below(manager.provisioner.pid)
    assert len(processes) == 5  # supervisor, stack, fork server, two agents
    yield manager, client, processes
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    assert not survivors(processes)


def _execute(client, code):
    reply = client.execute_interactive(code, timeout=PATIENCE, output_hook=lambda message: None)
    assert reply["content"]["status"] == "ok", reply["content"]


def test_kernel_shut_down_as_nbval_does(kernel):
    manager, _, processes = kernel
    manager.shutdown_kernel(now=True)
    assert not survivors(processes)


def test_kernel_restart(kernel):
    manager, _, processes = kernel
    manager.restart_kernel()
    assert not survivors(processes)


def test_kernel_shut_down_as_jupyter_does_when_it_closes(kernel):
    manager, _, processes = kernel
    manager.shutdown_kernel()
    assert not survivors(processes)


def test_kernel_crash(kernel):
    manager, _, processes = kernel
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    assert not survivors(processes)


def test_jupyter_crash(tmp_path):
    jupyter = subprocess.Popen(
        [sys.executable, "-m", "tests.supervisor.jupyter", str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    kernel = psutil.Process(int(jupyter.stdout.readline()))
    processes = [kernel, *kernel.children(recursive=True)]
    assert len(processes) == 6
    jupyter.kill()
    jupyter.communicate()
    assert not survivors(processes)  # the kernel notices that its parent is gone, and everything follows


def test_interrupt_leaves_the_desk_alone(kernel):
    manager, client, processes = kernel
    # A cell that awaits in short steps: ipykernel delivers an interrupt when the loop wakes up.
    client.execute("import asyncio; print('in')\nwhile True: await asyncio.sleep(0.1)")
    _wait_for_output(client, "in")
    manager.interrupt_kernel()
    assert client.get_shell_msg(timeout=PATIENCE)["content"]["status"] == "error"
    _execute(
        client,
        "pid = await desk.supervisor.kill('a'); assert await desk.event('agent_up', agent='a', count=2)",
    )
    assert len([p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]) == 4


def _wait_for_output(client, text):
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["msg_type"] == "stream" and text in message["content"]["text"]:
            return


@pytest.mark.parametrize("dying", ["agent", "supervisor"])
async def test_what_an_agent_started_goes_with_it(start, dying):
    desk = await start(("a", "parent"))
    child = psutil.Process((await desk.event("started"))["child"])
    if dying == "agent":
        await desk.supervisor.kill("a")
        assert await desk.event("agent_up", agent="a", count=2)
    else:
        os.kill(desk.supervisor.pid, signal.SIGKILL)
    assert not survivors([child])
