"""What a person can do wrong at a running desk: one sentence each, and the desk goes on."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from desk.analysis.counting import counts
from desk.analysis.turns import turns
from desk.control import DeskError, start
from desk.control.support import SupportDesk
from desk.course import timeline
from desk.runtime.saved import compare_and_swap
from desk.support.agent import EVENTS
from tests.supervisor.running import survivors

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_ticket_nobody_awaited_is_told_as_that(support: SupportDesk) -> None:
    forgotten = support.open_ticket("duplicate")
    for use in (support.events, support.counts, lambda t: timeline(support, t), lambda t: counts(support, t)):
        with pytest.raises(DeskError, match="write await before what makes it, as in await open_ticket"):
            use(forgotten)
    for wait in (support.approve, lambda t: support.until(t, "closed"), lambda t: turns(support, t)):
        with pytest.raises(DeskError, match="write await before"):
            await wait(forgotten)
    forgotten.close()


async def test_who_is_killed_without_a_place_is_killed_in_the_hold(support: SupportDesk) -> None:
    ticket = await support.run("duplicate", kill="resolver")
    kinds = [event["kind"] for event in support.events(ticket)]
    assert kinds.index("holding") < kinds.index("replay") < kinds.index("closed")


async def test_strange_records_on_the_events_topic_are_passed_over(support: SupportDesk) -> None:
    topic = support.laser.topic(EVENTS)
    for strange in (b"hello", b"\xff", b"[1]", b'{"kind": "asked"}', b"null"):
        await topic.publish().raw_bytes(strange, "json").send()
    ticket = await support.run("question")
    assert (await support.until(ticket, "closed"))["kind"] == "closed"
    assert support.log.foreign == 5


async def test_a_ticket_that_was_numbered_and_never_sent_is_said_to_be_none(
    support: SupportDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desk.control.support._OPENING", 0.3)
    ticket = await support.open_ticket("question")
    counters = support.laser.kv("counters")
    unsent = f"t-{await compare_and_swap(counters, 'ticket', lambda newest: newest + 1)}"  # and killed
    for waiting in (support.until(unsent, "closed", timeout=600), support.approve(unsent)):
        with pytest.raises(DeskError, match=f"^{unsent} has its number and nothing more: "):
            await waiting
    assert (await support.until(str(ticket), "closed"))["kind"] == "closed"
    assert await support.lane.has(str(ticket)) and not await support.lane.has(unsent)


async def test_whether_the_monkey_is_loose_is_known_to_whoever_listens(support: SupportDesk) -> None:
    heard: list[bool] = []
    remove = support.supervisor.listen(lambda _state: heard.append(support.supervisor.monkey))
    await support.chaos(True, every=60)
    assert heard[-1] is True
    await support.chaos(False)
    assert heard[-1] is False
    remove()


async def test_after_the_supervisor_was_killed_everything_says_so(tmp_path: Path) -> None:
    support = await start("support", data=tmp_path)
    try:
        ticket = await support.run("duplicate", answer=None)
        below = [psutil.Process(state.pid) for state in support.processes.values()]
        os.kill(support.supervisor.pid, signal.SIGKILL)
        while not support.supervisor.ended:  # noqa: ASYNC110 (its pipe ends: there is no event of ours)
            await asyncio.sleep(0.01)
        assert not survivors(below)  # its pipe ends a moment before they do: a stack may still answer
        for work in (
            support.open_ticket("question"),
            support.approve(ticket),
            support.group("resolver"),
            support.kill("resolver"),
            support.until(ticket, "closed", timeout=0.1),
        ):
            with pytest.raises(DeskError, match="The supervisor has ended: start the desk again"):
                await work
    finally:
        await support.stop()


async def test_a_stack_that_does_not_answer_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desk.control.running.ANSWER", 0.5)
    support = await start("support", data=tmp_path)
    try:
        os.kill(support.processes["stack"].pid, signal.SIGSTOP)
        with pytest.raises(DeskError, match="The stack did not answer in time"):
            await support.open_ticket("question")
    finally:
        await support.stop()


async def test_whoever_listens_hears_that_the_log_cannot_be_read_and_that_it_can_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desk.control.events.SILENT", 2.0)
    support = await start("support", data=tmp_path)
    try:
        heard: asyncio.Queue[str] = asyncio.Queue()
        remove = support.hear(heard.put_nowait)
        os.kill(support.processes["stack"].pid, signal.SIGSTOP)
        assert (await asyncio.wait_for(heard.get(), 60)).startswith(
            "The log cannot be read (the stack does not answer)"
        )
        os.kill(support.processes["stack"].pid, signal.SIGCONT)
        assert await asyncio.wait_for(heard.get(), 60) == ""
        os.kill(support.supervisor.pid, signal.SIGKILL)
        while await asyncio.wait_for(heard.get(), 60) != "The supervisor has ended: start the desk again.":
            pass
        remove()
    finally:
        await support.stop()
