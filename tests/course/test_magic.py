"""%%agent in a cell: a process from the cell, one sentence when it cannot be one, the shipped agent back."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from desk.control import start
from desk.control.errors import DeskError
from desk.control.support import SupportDesk
from desk.course.magic import CellError, desk_for, install

CELL = '''%%agent resolver
from desk.support import resolver
from desk.support.agent import serve

async def resolve(desk, session, body):
    """Without a look at the order everything is refused."""
    await resolver.finish(desk, session, body, None)

async def main(me):
    await serve(me, {"resolve": resolve})
'''


@pytest.fixture
def shell():
    made = InteractiveShell.instance()
    install(made)
    yield made
    InteractiveShell.clear_instance()


async def run(shell: InteractiveShell, cell: str) -> None:
    """As a kernel runs it."""
    result = await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))
    result.raise_error()


async def test_an_agent_from_a_cell_and_back(shell, tmp_path, capsys):
    support = shell.user_ns["support"] = await start("support", name="cells", data=tmp_path)
    try:
        await run(shell, CELL)
        assert (
            f"resolver up (pid {support.processes['resolver'].pid}), from resolver_1.py"
            in capsys.readouterr().out
        )
        ticket = await support.run("duplicate")
        assert (support.counts(ticket).looked_up, support.counts(ticket).paid) == (0, 0)
        with pytest.raises(
            CellError, match=r"^Line 5: SyntaxError: .* The resolver that was running still runs\.$"
        ):
            await run(shell, CELL.replace("body):", "body:"))
        shell.user_ns["other"] = support  # another name of the same desk is no second desk
        await run(shell, "if True:\n    %agent --reset")
        assert "resolver up (pid" in capsys.readouterr().out
        assert support.counts(await support.run("duplicate")).paid == 1
    finally:
        await support.stop()
    with pytest.raises(CellError, match="none is running"):
        await run(shell, CELL)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%agent --reset", "^Agents from cells work on a support desk: none is running, await start"),
        ("%%agent resolver --desk tomorrow\npass", "tomorrow is no running support desk"),
    ],
)
async def test_without_a_desk_it_says_so(shell, cell, says):
    shell.user_ns.update(support=3)
    with pytest.raises(CellError, match=says):
        await run(shell, cell)


async def test_of_several_desks_one_has_to_be_named(tmp_path):
    one, two = object.__new__(SupportDesk), object.__new__(SupportDesk)
    one._running = two._running = True
    with pytest.raises(DeskError, match="as in %%agent --desk support: running are one, two"):
        desk_for([], {"one": one, "two": two})
    with pytest.raises(DeskError, match="as in %%agent clerk --desk support"):
        desk_for(["clerk"], {"one": one, "two": two})


def test_what_a_notebook_shows_is_the_sentence_alone():
    assert CellError("Line 2: no.")._render_traceback_() == ["Line 2: no."]


def test_installing_again_changes_nothing(shell):
    before = list(shell.input_transformers_post)
    install(shell)
    install(None)
    assert shell.input_transformers_post == before
