"""Notebook 14's exercises: what is shipped is what the cells begin with, and code that is typically wrong does not pass.

That the untouched cells fail and the hidden solutions pass, tests/notebooks sees.
"""

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
    "code",
    [
        without("resolver", r"^ +(lookup =|await lookup).*\n"),  # the record instead of the bookmark
        without("resolver", r"^ +await desk.event\(.checkpoint.*\n"),  # the word instead of the thing
    ],
)
async def test_14_1_something_else_than_the_checkpoint_taken_out(support, code):
    await support.use_code("resolver", code)
    mine = await support.run("duplicate", kill="resolver", at="holding")
    assert not check("14.1", (support.counts(mine).looked_up, support.counts(mine).held)).ok
    await support.use_shipped("resolver")


async def test_14_2_the_words_about_the_notes_taken_out_instead_of_the_notes(support):
    await support.use_code("billing", without("billing", r"^ +await desk.event\(.ledger.*\n"))
    counted = []
    for bank in ("keyed", "forgetful"):
        await support.use_bank(bank)
        for place in ("paid", "reply"):
            counts = support.counts(await support.run("duplicate", kill="billing", at=place))
            counted.append((counts.bank_asked, counts.paid))
    assert not check("14.2", counted).ok
    await support.use_shipped("billing")
    await support.use_bank("keyed")


async def test_14_3_one_of_two_faults_repaired(support):
    await support.use_code(
        "mine", UNTOUCHED["mine"].replace("done = {}", "done = await so_far(desk, session)")
    )
    assert not check("14.3", (await exam(support, "mine", "greet", customer="c-5")).passed).ok
