"""Each start has a folder of its own; folders of kernels that are gone are cleared away, others are not."""

import os

import psutil

from desk.course.starting import _say, free_name, reset, start, sweep
from tests.notebooks.lessons import left_behind


def gone_pid() -> int:
    return next(pid for pid in range(2_000_000, 3_000_000) if not psutil.pid_exists(pid))


def test_a_second_start_of_the_same_kernel_has_another_folder(tmp_path):
    first = free_name(tmp_path, "support")
    assert first == f"support-{os.getpid()}"
    (tmp_path / first).mkdir()
    assert free_name(tmp_path, "support") == f"{first}-2"


def test_only_folders_of_lessons_whose_kernel_is_gone_are_removed(tmp_path):
    mine, other, gone = f"support-{os.getpid()}", "demo", f"support-{gone_pid()}-2"
    for name in (mine, other, gone):
        (tmp_path / name).mkdir()
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine, other])
    sweep(tmp_path / "not there")


def test_what_came_up_is_said_a_line_each_and_the_folder_from_here(capsys):
    _say(f"stack     up on 127.0.0.1:4, data {os.getcwd()}/.desk/support-1")
    _say("triage    up (pid 1)   resolver  up (pid 2)   billing   up (pid 3)")
    assert capsys.readouterr().out.splitlines() == [
        "stack up on 127.0.0.1:4, data .desk/support-1",
        "triage up (pid 1)",
        "resolver up (pid 2)",
        "billing up (pid 3)",
    ]


async def test_reset_ends_this_notebooks_desks_and_takes_their_folders(tmp_path, capsys):
    running = await start("support", data=tmp_path)
    stopped = await start("support", data=tmp_path)
    await stopped.stop()
    other = tmp_path / f"support-{os.getppid()}"
    other.mkdir()
    await reset()
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name]
    assert left_behind(tmp_path) == []
    assert not running.running
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 desk folder(s)")
    await reset()
    again = await start("support", data=tmp_path)
    assert again.folder.is_dir()
    await reset()
