"""Notebook 14's exercises: each check fails on the untouched cell and on a typical wrong answer, and passes on the solution."""

import ast
import inspect
import re

import pytest
import pytest_asyncio

from desk.control import start
from desk.course import check, exam
from desk.support import billing, resolver
from tests.notebooks.lessons import FOLDER, code_cells, is_agent, read

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOOK = read(FOLDER / "14_your_own_agent.ipynb")
UNTOUCHED = {
    cell.source.split(None, 2)[1]: cell.source.split("\n", 1)[1]
    for cell in code_cells(BOOK)
    if is_agent(cell)
}
SOLVED = {
    name: code
    for cell in BOOK.cells
    for name, code in re.findall(r"```python\n%%agent (\w+)\n(.*?)```", cell.source, re.S)
}


def without(agent: str, pattern: str) -> str:
    """The untouched cell with what the pattern finds taken out."""
    changed = re.sub(pattern, "", UNTOUCHED[agent], flags=re.M)
    assert changed != UNTOUCHED[agent]
    return changed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def support(tmp_path_factory):
    desk = await start("support", name="own", data=tmp_path_factory.mktemp("own"), policy_pause=0.2)
    yield desk
    await desk.stop()


async def test_every_exercise_has_its_cell_and_its_solution():
    assert {"resolver", "billing", "mine"} <= set(UNTOUCHED) and set(SOLVED) == {
        "resolver",
        "billing",
        "mine",
    }


def body_of(source: str, name: str) -> str:
    """A function's statements without its docstring, as a tree."""
    found = next(node for node in ast.parse(source).body if getattr(node, "name", "") == name)
    return "\n".join(ast.dump(node) for node in found.body[bool(ast.get_docstring(found)) :])


@pytest.mark.parametrize(
    ("agent", "shipped", "name"), [("resolver", resolver, "resolve"), ("billing", billing, "refund")]
)
async def test_the_untouched_cell_is_what_is_shipped(agent, shipped, name):
    assert body_of(UNTOUCHED[agent], name) == body_of(inspect.getsource(shipped), name)


@pytest.mark.parametrize(
    ("code", "ok"),
    [
        (UNTOUCHED["resolver"], False),
        (without("resolver", r"^ +(lookup =|await lookup).*\n"), False),  # the record instead of the bookmark
        (
            without("resolver", r"^ +await desk.event\(.checkpoint.*\n"),
            False,
        ),  # the word instead of the thing
        (SOLVED["resolver"], True),
    ],
)
async def test_14_1_the_checkpoint_taken_out(support, code, ok):
    await support.use_code("resolver", code)
    mine = await support.run("duplicate", kill="resolver", at="holding")
    assert check("14.1", (support.counts(mine).looked_up, support.counts(mine).held)).ok is ok
    await support.use_shipped("resolver")


@pytest.mark.parametrize(
    ("code", "ok"),
    [
        (UNTOUCHED["billing"], False),
        (without("billing", r"^ +await desk.event\(.ledger.*\n"), False),  # the words instead of the notes
        (SOLVED["billing"], True),
    ],
)
async def test_14_2_the_ledger_taken_out(support, code, ok):
    await support.use_code("billing", code)
    counted = []
    for bank in ("keyed", "forgetful"):
        await support.use_bank(bank)
        for place in ("paid", "reply"):
            counts = support.counts(await support.run("duplicate", kill="billing", at=place))
            counted.append((counts.bank_asked, counts.paid))
    assert check("14.2", counted).ok is ok
    await support.use_shipped("billing")
    await support.use_bank("keyed")


@pytest.mark.parametrize(
    ("code", "ok"),
    [
        (UNTOUCHED["mine"], False),
        (
            UNTOUCHED["mine"].replace("done = {}", "done = await so_far(desk, session)"),
            False,
        ),  # the key is left
        (SOLVED["mine"], True),
    ],
)
async def test_14_3_an_agent_of_ones_own(support, code, ok):
    await support.use_code("mine", code)
    assert check("14.3", (await exam(support, "mine", "greet", customer="c-5")).passed).ok is ok
