"""The counting script: how many lines of each system's ticket are there only for durability, helpers included.

One rule for all. A unit is a file, or a function or class in one. Its lines are those that hold code: no blanks, no
comments, no docstrings, and none that ends with `# measures`, which is this benchmark's own. Durability is what the
units have more than the same work without it: for the rivals than the ticket in plain Python, for this desk than its
baseline agents. A function of the desk that has a single line for durability counts whole, with its texts and events,
and so does every helper that only counted code calls. What the baseline runs on too (`resolver.finish`, `Desk.hand`) is
on both sides and left out, for all that a claim and derived keys stand in it.
"""

import ast
import io
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from bench.rivals.environments import ROOT

MEASURES = "# measures"
_NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)
_WORKERS = "bench/rivals/workers"


@dataclass(frozen=True)
class Ticket:
    """units: "path" or "path:name" or "path:Class.name" that do the ticket durably; without: the same work without
    durability; queue: what delivers tickets and answers, where the system brings nothing for it.
    """

    units: Sequence[str]
    without: Sequence[str] = ()
    queue: Sequence[str] = ()


TICKETS: Mapping[str, Ticket] = {
    "Laser Desk": Ticket(
        units=(
            "desk/support/resolver.py:resolve",
            "desk/support/resolver.py:lookup_results",
            "desk/support/resolver.py:is_lookup_result",
            "desk/support/resolver.py:names",
            "desk/support/resolver.py:name",
            "desk/support/resolver.py:ask_person",
            "desk/support/resolver.py:decide",
            "desk/support/billing.py:refund",
            "desk/support/agent.py:Desk.reply",
            "desk/support/agent.py:Desk.end_issue",
            "desk/support/agent.py:Desk.open_issues",
            "desk/support/ledger.py",
            "desk/support/cases.py",
            "desk/runtime/saved.py",
            "desk/runtime/process.py:ending_when_lost",
            "desk/runtime/connect.py:connection_lost",
        ),
        without=("desk/support/baseline.py:resolve", "desk/support/baseline.py:refund"),
    ),
    "plain": Ticket(
        (f"{_WORKERS}/plain.py",), without=(f"{_WORKERS}/plain.py",), queue=(f"{_WORKERS}/inbox.py",)
    ),
    "DBOS": Ticket((f"{_WORKERS}/on_dbos.py",), without=(f"{_WORKERS}/plain.py",)),
    "LangGraph": Ticket(
        (f"{_WORKERS}/on_langgraph.py",), without=(f"{_WORKERS}/plain.py",), queue=(f"{_WORKERS}/inbox.py",)
    ),
    "Restate": Ticket((f"{_WORKERS}/on_restate.py",), without=(f"{_WORKERS}/plain.py",)),
}


@dataclass(frozen=True)
class Lines:
    """Lines of code. ticket: what does the ticket durably; durability: of these, for durability; queue: beside them."""

    ticket: int
    durability: int
    queue: int


def count(ticket: Ticket) -> Lines:
    """One system's lines."""
    all_of, without, queue = (
        sum(code_lines(*_unit(unit)) for unit in units)
        for units in (ticket.units, ticket.without, ticket.queue)
    )
    return Lines(all_of, all_of - without, queue)


def code_lines(source: str, name: str = "") -> int:
    """Lines of code of a source text, or of the function or class in it that `name` ("f" or "Class.f") names."""
    tree = ast.parse(source)
    wanted = _find(tree, name.split(".")) if name else tree
    first, last = (wanted.lineno, wanted.end_lineno) if name else (1, len(source.splitlines()))
    texts = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    measures = {n for n, text in enumerate(source.splitlines(), 1) if text.rstrip().endswith(MEASURES)}
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return sum(first <= line <= last for line in code - texts - measures)


def _find(tree: ast.AST, path: Sequence[str]) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
    for node in tree.body:
        if getattr(node, "name", None) == path[0]:
            return _find(node, path[1:]) if path[1:] else node
    raise LookupError(f"There is no {'.'.join(path)} to count.")


@cache
def _unit(unit: str) -> tuple[str, str]:
    path, _, name = unit.partition(":")
    return (ROOT / path).read_text(), name
