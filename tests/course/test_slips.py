"""A slip in what a lesson's function is given: one sentence, for every function a lesson imports."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from desk import course
from desk.control import DeskError, start
from desk.control.fleet import FleetDesk
from desk.control.support import SupportDesk
from desk.course import panel

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]

Slip = tuple[Callable[[Any, Any], Any], str]
TICKET, INCIDENT = "The log has no ticket 't-999': it has t-1.", "The log has no incident 'mon-9': it has"

SLIPS: tuple[Slip, ...] = (
    (lambda s, f: course.timeline(s, "t-999"), TICKET),
    (lambda s, f: course.timeline(f, "mon-9"), INCIDENT),
    (lambda s, f: course.timeline(s), "Call it as timeline(desk, of): missing a required argument: 'of'."),
    (lambda s, f: course.timeline("t-1", s), "not 't-1'."),
    (lambda s, f: course.counts(s, "t-999"), TICKET),
    (lambda s, f: course.counts(s, {"plain": ["t-1", "t-999"]}), TICKET),
    (lambda s, f: course.counts(f, "t-1"), "This is about the support desk"),
    (lambda s, f: course.counts(s, s.open_ticket("question")), "write await before"),
    (lambda s, f: course.counts(s, []), "There is no ticket in this list"),
    (lambda s, f: course.counts(s, 1), "Tickets are one or several, not 1."),
    (lambda s, f: course.most_hit(s, []), "There is no ticket in this list"),
    (lambda s, f: course.most_hit(s, "t-1"), "Tickets are a list"),
    (lambda s, f: course.kept(s, s.open_ticket("question")), "write await before"),
    (lambda s, f: course.kept(s, "ledgr"), "did you mean ledger?"),
    (lambda s, f: course.kept(s, 5), "A namespace is text such as 'ledger', not 5."),
    (lambda s, f: course.kept(f, "ledger"), "This is about the support desk"),
    (lambda s, f: course.offsets(s, "resolvr"), "did you mean resolver?"),
    (lambda s, f: course.turns(s, "t-999"), TICKET),
    (lambda s, f: course.turns(s, "t-1", 0), "The first issue of a ticket is 1, not 0."),
    (lambda s, f: course.freeze(s, "resolvr"), "did you mean resolver?"),
    (lambda s, f: course.outlived(s, "biling", "paid"), "did you mean billing?"),
    (lambda s, f: course.outlived(s, "billing", 5), "Where to die is text such as 'paid', not 5."),
    (lambda s, f: course.exam(s, "nobody", "greet"), "There is no agent named 'nobody'"),
    (lambda s, f: course.exam(s, "resolver", 5), "An operation is text such as 'book', not 5."),
    (lambda s, f: course.spent(s, "t-1", {"lookup": 1}), "Tickets are a list"),
    (lambda s, f: course.spent(s, ["t-1"], {"lookup": "dear"}), "Prices are a dict"),
    (lambda s, f: course.latency_plot(s, []), "There is no ticket in this list"),
    (lambda s, f: course.incoming(f), "This is about the support desk"),
    (lambda s, f: course.evals(f), "This is about the support desk"),
    (lambda s, f: course.same_day(s, "yesterday"), "Letters are a list"),
    (lambda s, f: course.same_day(s, ["a letter"]), "Letters are what await incoming(support) returns"),
    (lambda s, f: course.versions([s], {}), "Desks are a dict"),
    (lambda s, f: course.versions({"x": f}, {}), "This is about the support desk"),
    (lambda s, f: course.told_otherwise(s, f), "This is about the support desk"),
    (lambda s, f: course.served("support"), "not 'support'."),
    (lambda s, f: course.recovery_plot(None), "not None."),
    (lambda s, f: course.answer_to("how many"), "A query is built as in fleet.laser.query"),
    (lambda s, f: course.refused("a fork"), "Give it what would be awaited, without await"),
    (lambda s, f: course.rewind(s), "This is about the delivery desk"),
    (lambda s, f: course.rounds(s), "This is about the delivery desk"),
    (lambda s, f: course.checks(s), "This is about the delivery desk"),
    (lambda s, f: course.capsules(s), "This is about the delivery desk"),
    (lambda s, f: course.bill_beside(f), "There is no bill yet"),
    (lambda s, f: course.discrepancies(f), "There is no bill yet"),
    (lambda s, f: course.drops(f, "van-9"), "There is no van on the road named 'van-9'"),
    (lambda s, f: course.drops(f, 1), "A van is text such as 'van-1', not 1."),
    (lambda s, f: course.beside(["a", "b"]), "Columns are a dict"),
    (lambda s, f: course.beside({"before": f.rounds()}), "write await before"),
    (lambda s, f: course.close_roads(f, "two"), "How many is a whole number such as 7, not 'two'."),
    (lambda s, f: course.squeeze_in(f, "stop-999", "van-1"), "There is no stop 'stop-999'"),
    (lambda s, f: course.remembered(f, "Peter"), "There is no stop 'Peter'"),
    (lambda s, f: course.remember_again(f, "Peter"), "There is no stop 'Peter'"),
    (lambda s, f: course.journal(f, "mon-9"), INCIDENT),
    (lambda s, f: course.steps(f, f.incident("closure")), "write await before"),
    (lambda s, f: course.told(f, 5), "An incident is text such as 'mon-1', not 5."),
    (lambda s, f: course.shares(f), "give it fleet.events(), not the desk."),
    (lambda s, f: course.shares_plot(f.events(), "routing-1"), "Copies are a list"),
    (lambda s, f: course.plans_beside_solver(9), "The fleet has 2 to 8 vans, not 9."),
    (lambda s, f: course.check("99.9", 1), "There is no exercise '99.9'"),
    (lambda s, f: course.check(["2.1"], 1), "There is no exercise ['2.1']"),
    (lambda s, f: course.check("2.1", s.open_ticket("question")), "write await before"),
    (lambda s, f: course.show(5), "There is no module desk.5"),
    (lambda s, f: course.show("support.resolver", 5), "has no 5: it has"),
    (lambda s, f: course.start(5), "There is no desk 5: choose support or fleet."),
    (lambda s, f: panel.ticket(f), "This panel is of the support desk, not of the delivery desk."),
    (lambda s, f: panel.map(s), "This panel is of the delivery desk, not of the support desk."),
    (lambda s, f: panel.control_room(s), "This panel is of the delivery desk, not of the support desk."),
    (lambda s, f: panel.agents("support"), "A panel shows a running desk, not 'support'."),
    (lambda s, f: panel.agents(start("support")), "write await before"),
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desks(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[SupportDesk, FleetDesk]]:
    data = tmp_path_factory.mktemp("slips")
    support, fleet = await asyncio.gather(
        start("support", data=data), start("fleet", data=data, day="mon", vans=2, orders=0)
    )
    await support.run("question")
    await fleet.incident("closure")
    yield support, fleet
    await asyncio.gather(support.stop(), fleet.stop())


@pytest.mark.parametrize(("slip", "sentence"), SLIPS, ids=[str(n) for n in range(len(SLIPS))])
async def test_is_one_sentence(
    desks: tuple[SupportDesk, FleetDesk], slip: Callable[[Any, Any], Any], sentence: str
) -> None:
    with pytest.raises(DeskError) as caught:
        done = slip(*desks)
        if inspect.isawaitable(done):
            await done
    said = str(caught.value)
    del caught  # and with it what nobody awaits: here, not in whatever test comes next
    assert sentence in said
    assert re.fullmatch(r"\S[^\n]*[.?]", said), said


def names() -> list[str]:
    """Everything a lesson can call with arguments."""
    for name in course.__all__:
        value = getattr(course, name)
        if (
            inspect.isfunction(value)
            and inspect.signature(value).parameters
            and name not in ("refused", "start")
        ):
            yield name


@pytest.mark.parametrize(
    "name", sorted({*names()} - {"check", "show", "start"})
)  # Python says well what those lack
async def test_a_call_without_arguments_says_how_it_is_called(name: str) -> None:
    with pytest.raises(DeskError, match=rf"Call it as {name}\("):
        done = getattr(course, name)()
        if inspect.isawaitable(done):
            await done


async def test_a_stack_that_has_gone_is_a_sentence_too(tmp_path: Path) -> None:
    support = await start("support", data=tmp_path)
    ticket = await support.run("question")
    await support.stop()
    for work in (course.turns(support, ticket), course.kept(support, "ledger"), course.served(support)):
        with pytest.raises(DeskError, match="This desk has stopped: start another"):
            await work
    assert course.counts(support, ticket).table.loc["t-1", "looked up"] >= 1
