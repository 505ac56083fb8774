"""Can this module be an agent? `python -m desk.control.trial FOLDER MODULE` imports it and answers in one JSON line.

Imported, never run: that main is there, that it is a coroutine function, that every name its functions use is known.
"""

import builtins
import contextlib
import dis
import importlib
import inspect
import io
import json
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType


def refusal(folder: Path, name: str) -> str:
    """One sentence with the line, or "" when the module can be an agent."""
    file = str(folder / f"{name}.py")
    sys.path.append(str(folder))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(name)
    except SyntaxError as error:
        where = f"Line {error.lineno}: " if error.filename == file else ""
        return f"{where}{type(error).__name__}: {error.msg}."
    except BaseException as error:
        own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        where = f"Line {own[-1]}: " if own else ""
        return f"{where}{type(error).__name__}: {str(error).rstrip('.') or 'no reason given'}."
    return unknown(module, file) or wrong_main(module)


def wrong_main(module: ModuleType) -> str:
    """What is the matter with the module's main, or ""."""
    main = getattr(module, "main", None)
    if main is None:
        return "There is no main: an agent ends with async def main(me)."
    if not inspect.iscoroutinefunction(main):
        return "main is not a coroutine: write async def main(me)."
    if len(inspect.signature(main).parameters) != 1:
        return "main takes one argument: write async def main(me)."
    return ""


def unknown(module: ModuleType, file: str) -> str:
    """The first global name that a function of this file uses and nobody defines, or ""."""
    known = {*vars(module), *vars(builtins)}
    functions = [
        value.__code__
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__code__.co_filename == file
    ]
    found = sorted((line, name) for code in functions for line, name in used(code) if name not in known)
    return f"Line {found[0][0]}: NameError: name '{found[0][1]}' is not defined." if found else ""


def used(code: CodeType) -> list[tuple[int, str]]:
    """Every global a function's code reads, with its line, functions inside it included."""
    here = [
        ((instruction.positions and instruction.positions.lineno) or 0, instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname == "LOAD_GLOBAL"
    ]
    inner = [used(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return [*here, *(pair for pairs in inner for pair in pairs)]


if __name__ == "__main__":
    print(json.dumps({"refusal": refusal(Path(sys.argv[1]), sys.argv[2])}))
