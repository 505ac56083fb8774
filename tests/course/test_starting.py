"""Each start has a folder of its own; folders of kernels that are gone are cleared away, others are not."""

import os
from pathlib import Path

import psutil
import pytest
from IPython.core.interactiveshell import InteractiveShell

from desk.control import DeskError
from desk.course.starting import _say, assigned, free_name, reset, start, sweep
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
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 desk folders")
    await reset()
    again = await start("support", data=tmp_path)
    assert again.folder.is_dir()
    await reset()


CELLS = {
    "again = await start('support')": "again",
    "again = await start(\n    'support',\n    seed=8,\n)": "again",
    "await start('support')": "_",
    "kept.append(await start('support'))": "",
    "one, other = await start('support'), 2": "",
    "for _ in range(1):\n    inner = await start('support')": "inner",
    "": "",
}


@pytest.mark.parametrize(("cell", "variable"), CELLS.items(), ids=[str(n) for n in range(len(CELLS))])
def test_the_variable_a_cell_gives_the_desk_to(cell: str, variable: str, tmp_path: Path) -> None:
    file = tmp_path / "cell.py"
    file.write_text(cell)
    assert assigned(str(file), len(cell.splitlines()) or 1) == variable


async def run(shell: InteractiveShell, cell: str) -> None:
    result = await shell.run_cell_async(cell, transformed_cell=cell)
    result.raise_error()


async def test_a_start_cell_run_again_ends_the_desk_it_started_before_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DESK_DATA", str(tmp_path))
    shell = InteractiveShell()
    start_cell = "support = await start('support')"

    try:
        await run(shell, "from desk.course import reset, start")
        await run(shell, start_cell)
        first = shell.user_ns["support"]
        await run(shell, "other = await start('support')")
        capsys.readouterr()
        await run(shell, start_cell)
        said = capsys.readouterr().out.splitlines()
        assert said[0] == "the desk started here before is stopped first, so that none runs on unseen"
        assert "resolver up" in said[3]
        second = shell.user_ns["support"]
        assert (first.running, second.running, shell.user_ns["other"].running) == (False, True, True)
        await run(shell, "kept = support")
        await run(shell, start_cell)
        assert second.running and shell.user_ns["support"].running
    finally:
        await run(shell, "await reset()")
    assert left_behind(tmp_path) == []


REFUSED = {
    "start('suport')": "no desk 'suport'",
    "start('support', polcy_pause=8)": "no setting 'polcy_pause'",
    "start('support', policy_pause='long')": "not a number of seconds",
    "start('support', bank='forgetfull')": "forgetfull",
    "start('support', name='a/b')": "plain name",
    "start('support', name='never', resume=True)": "no desk in",
    "start('fleet', vans=99)": "2 to 8 vans",
    "start('fleet', name='never', resume=True)": "no desk in",
}


async def test_a_start_that_is_refused_leaves_the_running_desk_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_DATA", str(tmp_path))
    shell = InteractiveShell()
    try:
        await run(shell, "from desk.course import reset, start")
        await run(shell, "support = await start('support')")
        running = shell.user_ns["support"]
        for call, says in REFUSED.items():
            with pytest.raises(DeskError, match=says):
                await run(shell, f"support = await {call}")
            assert running.running and shell.user_ns["support"] is running, call
    finally:
        await run(shell, "await reset()")
    assert left_behind(tmp_path) == []
