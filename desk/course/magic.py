"""%%agent: write the cell to a module and run that agent from it, as a real process under the supervisor.

On a support desk. A delivery desk's agents come from this project only: its lessons change what happens to them.
"""

import re
from collections.abc import Mapping
from typing import Any

from IPython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from desk.control.errors import DeskError
from desk.control.support import SupportDesk


class CellError(RuntimeError):
    """What is the matter with a cell, in one sentence. A notebook shows the sentence and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


_CALL = re.compile(r"^(\s*)(get_ipython\(\)\.run_(?:cell|line)_magic\('agent',)")


def awaited(lines: list[str]) -> list[str]:
    """IPython's own words for the magic, awaited: agents are started on the loop the desk lives on."""
    return [_CALL.sub(r"\1await \2", line) for line in lines]


def desk_for(names: list[str], namespace: Mapping[str, Any], wanted: str = "") -> SupportDesk:
    """The running desk these agents belong to: the one in the variable `wanted`, or the only one there is.

    Raises DeskError.
    """
    running = {
        variable: value
        for variable, value in namespace.items()
        if isinstance(value, SupportDesk) and value.running and not variable.startswith("_")
    }
    if wanted and wanted not in running:
        raise DeskError(f"{wanted} is no running support desk: {_choice(running)}.")
    if not running:
        raise DeskError(f"Agents from cells work on a support desk: {_choice(running)}.")
    if len({id(desk) for desk in running.values()}) != 1 and not wanted:
        raise DeskError(
            f"Say which desk, as in {' '.join(('%%agent', *names))} --desk support: {_choice(running)}."
        )
    return running[wanted] if wanted else next(iter(running.values()))


def _choice(running: Mapping[str, Any]) -> str:
    return (
        f"running are {', '.join(running)}"
        if running
        else 'none is running, await start("support") starts one'
    )


@no_var_expand
@magic_arguments()
@argument("names", nargs="*", help="the agent, such as resolver; a new name makes a new agent")
@argument("--reset", action="store_true", help="the shipped code again; of every agent when none is named")
@argument("--desk", default="", help="the variable that holds the desk, when several are running")
async def agent(line: str, cell: str | None = None) -> None:
    """Run an agent from this cell, or with --reset from the shipped code again.

    The cell is the whole of a module: it imports what it uses and ends with `async def main(me)`. A cell that cannot
    be an agent changes nothing.
    """
    told = parse_argstring(agent, line)
    try:
        desk = desk_for(told.names, get_ipython().user_ns, told.desk)
        if told.reset and cell is None:
            await desk.use_shipped(*told.names)
            for name in told.names or desk.shipped:
                print(f"{name} up (pid {desk.processes[name].pid}), as shipped")
        elif cell is None or told.reset or len(told.names) != 1:
            raise DeskError(
                "%%agent NAME runs an agent from its cell, %agent --reset the shipped ones again."
            )
        else:
            module = await desk.use_code(told.names[0], cell)
            pid = desk.processes[told.names[0]].pid
            print(f"{told.names[0]} up (pid {pid}), from {module}.py")
    except DeskError as error:
        raise CellError(str(error)) from None


def install(shell: InteractiveShell | None) -> None:
    """Give a notebook the magic. Outside of one nothing is done; doing it again changes nothing."""
    if shell is None or "agent" in shell.magics_manager.magics["cell"]:
        return
    shell.register_magic_function(agent, "line_cell", "agent")
    shell.input_transformers_post.append(awaited)
