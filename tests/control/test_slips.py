"""Slips at running desks: a typo, a wrong type, a forgotten await. Each is one sentence, told before anything is done."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from desk.control import DeskError, start
from desk.control.fleet import FleetDesk
from desk.control.support import SupportDesk

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:coroutine '.*(open_ticket|incident|rounds)' was never awaited"),
]

Slip = tuple[Callable[[Any], Any], str]

SUPPORT: tuple[Slip, ...] = (
    (lambda s: s.open_ticket(5), "opened with text or one of the scenarios"),
    (lambda s: s.open_ticket("duplicat"), "did you mean duplicate?"),
    (lambda s: s.open_ticket(s.open_ticket("question")), "write await before"),
    (lambda s: s.open_ticket("question", 17), "A customer is an id such as c-17, not 17."),
    (lambda s: s.give("resolvr", "book", {}), "no agent named 'resolvr': did you mean resolver?"),
    (lambda s: s.give("resolver", "book", "a table"), "A job's body is a dict, not 'a table'."),
    (lambda s: s.give("resolver", 5, {}), "An operation is text such as 'book', not 5."),
    (lambda s: s.send("t-1"), "Send what open_ticket returned, not 't-1'."),
    (lambda s: s.until("t-999", "closed"), "There is no t-999: "),
    (lambda s: s.until("duplicate", "closed"), "A ticket is called t-1, not 'duplicate'"),
    (lambda s: s.until(1, "closed"), "A ticket is text such as 't-1', not 1."),
    (lambda s: s.until(["t-1"], "closed"), "A ticket is text such as 't-1', not ['t-1']."),
    (lambda s: s.until("t-1"), "Say what to wait for, such as asked or closed."),
    (lambda s: s.until("t-1", ["asked", "closed"]), "What to wait for is text such as 'closed', not ['asked', 'closed']."),
    (lambda s: s.until("t-1", "closed", timeout="x"), "timeout is a number of seconds from 0 on, such as 5, not 'x'."),
    (lambda s: s.until("t-1", "closed", timeout=-1), "timeout is a number of seconds from 0 on, such as 5, not -1."),
    (lambda s: s.events(1), "A ticket is text such as 't-1', not 1."),
    (lambda s: s.counts("t-999"), "Nothing is known of 't-999': give what open_ticket returned."),
    (lambda s: s.counts(["t-1"]), "A ticket is text such as 't-1', not ['t-1']."),
    (lambda s: s.approve("t-999"), "There is no t-999: "),
    (lambda s: s.approve("t-1", by=5), "Who answers is text such as 'person', not 5."),
    (lambda s: s.decline(s.open_ticket("question")), "write await before"),
    (lambda s: s.run("duplicate", kill="resolvr"), "no process named 'resolvr': did you mean resolver?"),
    (lambda s: s.run("duplicate", kill="resolver", at=5), "Where to die is text such as 'paid', not 5."),
    (lambda s: s.run("duplicate", at="paid"), "Nobody dies at 'paid': say who, as in kill='resolver'."),
    (lambda s: s.run("duplicate", answer="maybe"), "A person can approve or decline, not 'maybe'."),
    (lambda s: s.run("duplicate", timeout="long"), "timeout is a number of seconds"),
    (lambda s: s.run_many("duplicate"), 'Scenarios are a list such as ["duplicate", "question"], not \'duplicate\'.'),
    (lambda s: s.run_many(["duplicate"], answer=["approve"]), "approve or decline, not ['approve']."),
    (lambda s: s.see_through("t-999"), "There is no t-999: "),
    (lambda s: s.group("resolvr"), "no agent named 'resolvr': did you mean resolver?"),
    (lambda s: s.kill("nobody"), "no process named 'nobody': choose from stack, triage"),
    (lambda s: s.kill(["resolver"]), "no process named ['resolver']: choose from"),
    (lambda s: s.kill("resolver", by=3), "Who kills is text such as 'code', not 3."),
    (lambda s: s.restart("resolver", baseline=1), 'A switch is text, as in baseline="1", not 1.'),
    (lambda s: s.use_baseline("triage"), "triage has no baseline"),
    (lambda s: s.use_baseline("resolver", "biling"), "did you mean billing?"),
    (lambda s: s.use_shipped(["resolver"]), "no shipped agent named ['resolver']"),
    (lambda s: s.use_code("resolver", 5), "The code of an agent is text, not 5."),
    (lambda s: s.use_code(5, ""), "An agent's name is text such as 'clerk', not 5."),
    (lambda s: s.use_bank("piggy"), "no bank named 'piggy': choose from forgetful, keyed."),
    (lambda s: s.chaos(True, every="x"), "every is a number of seconds above 0, such as 5, not 'x'."),
    (lambda s: s.chaos(True, every=0), "every is a number of seconds above 0, such as 5, not 0."),
    (lambda s: s.chaos("off"), "Chaos is True or False, not 'off'."),
    (lambda s: s.chaos(True, seed="x"), "A seed is a whole number such as 7, not 'x'."),
)  # fmt: skip

FLEET: tuple[Slip, ...] = (
    (lambda f: f.incident("closur"), "no incident 'closur': did you mean closure?"),
    (lambda f: f.incident(["closure"]), "no incident ['closure']: choose from closure"),
    (lambda f: f.incident("closure", "van-9"), "no van on the road named 'van-9': choose from van-1, van-2."),
    (lambda f: f.incident("closure", 1), "no van on the road named 1: choose from van-1, van-2."),
    (lambda f: f.vans(1), "The fleet has 2 to 8 vans, not 1."),
    (lambda f: f.vans("four"), "The fleet has 2 to 8 vans, not 'four'."),
    (lambda f: f.vans(f.rounds()), "write await before"),
    (lambda f: f.until(), "Say what to wait for"),
    (lambda f: f.until(5), "What to wait for is text such as 'closed', not 5."),
    (lambda f: f.until("closed", timeout="x"), "timeout is a number of seconds"),
    (lambda f: f.until("closed", incident="x-1"), "no incident 'x-1' on this day"),
    (lambda f: f.until("closed", incident=f.incident("closure")), "as in await incident"),
    (lambda f: f.until_over("x"), "timeout is a number of seconds"),
    (lambda f: f.kill("routing"), "no process named 'routing': did you mean routing-"),
    (lambda f: f.restart("simulator", speed=2), 'A switch is text, as in speed="1", not 2.'),
    (lambda f: f.speed("fast"), "DESK_SPEED='fast' is not a speed"),
    (lambda f: f.chaos(True, every=-1), "every is a number of seconds above 0"),
    (lambda f: f.quarantine("routing"), "routing is not an agent of the registry: choose from routing-1"),
    (lambda f: f.quarantine("customer"), "customer is the only one that serves notify"),
    (lambda f: f.reinstate("dispatch"), "dispatch is not an agent of the registry"),
    (lambda f: f.fix_and_redrive(by=5), "Who mends it is text such as 'person', not 5."),
    (lambda f: f.approve("x-bill"), "Nothing about x-bill waits for a decision."),
    (lambda f: f.decline(f.incident("closure")), "write await before"),
)  # fmt: skip

START: tuple[Slip, ...] = (
    (lambda data: start("helpdesk"), "There is no desk 'helpdesk': choose support or fleet."),
    (lambda data: start(["support"]), "There is no desk ['support']"),
    (lambda data: start("support", data=data, bank=5), "no bank named 5: choose from forgetful, keyed."),
    (lambda data: start("support", data=data, name=5), "a plain name such as demo, not 5."),
    (lambda data: start("support", data=data, policy_pause="soon"), "is not a number of seconds"),
    (lambda data: start("support", data=data, vans=3), "no setting 'vans'"),
    (lambda data: start("fleet", data=data, vans="4"), "The fleet has 2 to 8 vans, not '4'."),
    (lambda data: start("fleet", data=data, day=5), "A day cannot be called 5"),
    (lambda data: start("fleet", data=data, orders="x"), "So many customers cannot order in a day: 'x'."),
    (
        lambda data: start("fleet", data=data, incidents="closure"),
        "Planned incidents are a list such as FIVE",
    ),
    (lambda data: start("fleet", data=data, incidents=["closure"]), "plan a Planned of closure"),
    (
        lambda data: start("fleet", data=data, switches={"x": {}}),
        "no process named 'x': choose from dispatch",
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(data: Path) -> AsyncIterator[FleetDesk]:
    fleet = await start("fleet", data=data, day="mon", vans=2, orders=0)
    yield fleet
    await fleet.stop()


async def told(work: Callable[[], Any]) -> str:
    """The sentence a person gets."""
    with pytest.raises(DeskError) as caught:
        done = work()
        if hasattr(done, "__await__"):
            await done
    sentence = str(caught.value)
    del caught  # and with it what nobody awaits: here, not in whatever test comes next
    assert re.fullmatch(r"\S[^\n]*[.?]", sentence), sentence
    return sentence


@pytest.mark.parametrize(("slip", "sentence"), SUPPORT, ids=[str(n) for n in range(len(SUPPORT))])
async def test_at_the_support_desk(support: SupportDesk, slip: Callable[[Any], Any], sentence: str) -> None:
    pids = {name: s.pid for name, s in support.processes.items()}
    assert sentence in await told(lambda: slip(support))
    assert not [event for event in support.events() if event["kind"] != "agent_up"]  # which may be read late
    assert {name: s.pid for name, s in support.processes.items()} == pids


@pytest.mark.parametrize(("slip", "sentence"), FLEET, ids=[str(n) for n in range(len(FLEET))])
async def test_at_the_delivery_desk(fleet: FleetDesk, slip: Callable[[Any], Any], sentence: str) -> None:
    pids = {name: s.pid for name, s in fleet.processes.items()}
    assert sentence in await told(lambda: slip(fleet))
    assert not [event for event in fleet.events() if event["kind"] in ("wanted", "quarantined", "killed")]
    assert {name: s.pid for name, s in fleet.processes.items()} == pids


@pytest.mark.parametrize(("slip", "sentence"), START, ids=[str(n) for n in range(len(START))])
async def test_at_the_start(tmp_path: Path, slip: Callable[[Any], Any], sentence: str) -> None:
    assert sentence in await told(lambda: slip(tmp_path))
    assert not list(tmp_path.rglob("*.err"))  # noqa: ASYNC240 (a look after the work)


async def test_a_kind_nobody_writes_is_told_what_was_perhaps_meant(support: SupportDesk) -> None:
    ticket = await support.run("question")
    said = await told(lambda: support.until(ticket, "closd", timeout=0.1))
    assert said.startswith("t-1 did not reach closd within 0.1 s: the last was ")
    assert said.endswith("Did you mean closed?")


async def test_what_was_read_of_a_desk_that_has_stopped_stays(tmp_path: Path) -> None:
    fleet = await start("fleet", data=tmp_path, vans=2, orders=0)
    await fleet.until("departed")
    await fleet.stop()
    assert fleet.events() and not fleet.running
    for work in (
        fleet.rounds,
        fleet.checks,
        lambda: fleet.incident("closure"),
        lambda: fleet.until("closed"),
    ):
        assert await told(work) == "This desk has stopped: start another."
