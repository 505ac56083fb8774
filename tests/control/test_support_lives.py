"""A desk as a whole: fresh or resumed, one owner, clear refusals, its texts, its demo."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from desk.control import DeskError, start
from desk.control.events import Event, sentence

ROOT = Path(__file__).parent.parent.parent


async def test_resumed_it_knows_its_tickets_and_finishes_what_waited(tmp_path: Path) -> None:
    support = await start("support", data=tmp_path)
    ticket = await support.run("duplicate", answer=None)
    await support.stop()
    support = await start("support", data=tmp_path, resume=True)
    try:
        assert [question.ticket for question in support.waiting()] == [ticket]
        await support.approve(ticket)
        await support.until(ticket, "closed")
        assert support.counts(ticket).paid == 1
        assert await support.open_ticket("question") == "t-2"
    finally:
        await support.stop()


async def test_started_again_it_is_fresh_and_only_one_may_own_the_folder(tmp_path: Path) -> None:
    support = await start("support", data=tmp_path)
    await support.run("duplicate")
    with pytest.raises(DeskError, match="Another desk is using"):
        await start("support", data=tmp_path)
    await support.stop()
    with pytest.raises(DeskError, match="This desk has stopped"):
        await support.open_ticket("duplicate")
    assert support.counts("t-1").paid == 1 and support.events("t-1")  # what was read can still be looked at
    support = await start("support", data=tmp_path)
    try:
        assert support.bank.payments() == [] and support.waiting() == []
        assert await support.open_ticket("duplicate") == "t-1"
    finally:
        await support.stop()


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"policy_pause": "soon"}, "is not a number of seconds"),
        ({"colour": "red"}, "There is no setting 'colour'"),
        ({"llm": "api"}, "needs ANTHROPIC_API_KEY"),
        ({"resume": True}, "There is no desk in .* to resume"),
        ({"connection": "iggy:iggy@127.0.0.1:1"}, "127.0.0.1:1"),
        ({"connection": "iggy:secret"}, "missing credentials"),
        ({"bank": "piggy"}, "There is no bank named 'piggy': choose from forgetful, keyed"),
        ({"name": ".."}, "has a plain name"),
        ({"data": "/dev/null/desks"}, "cannot be used: Not a directory"),
    ],
)
async def test_what_cannot_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, object], sentence: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr("desk.control.running.PATIENCE", 0.5)
    with pytest.raises(DeskError, match=sentence) as said:
        await start("support", **{"data": tmp_path, **told})
    assert "\n" not in str(said.value) and "secret" not in str(said.value)


async def test_there_is_a_support_desk_and_a_fleet() -> None:
    with pytest.raises(DeskError, match="There is no desk 'shop': choose support or fleet"):
        await start("shop")


async def test_a_models_text_is_saved_and_not_asked_for_again_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho Another text each time: $$\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    support = await start("support", data=tmp_path / "data", llm="claude")
    try:
        ticket = await support.run("duplicate", kill="billing", at="reply")
        replies = [e for e in support.events(ticket) if e["kind"] == "reply"]
        assert len(replies) == 2 and len({e["text"] for e in replies}) == 1
        assert {e["by"] for e in replies} == {"claude"}
    finally:
        await support.stop()


async def test_a_model_that_fails_is_told_in_an_event_and_the_template_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho no credit >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    support = await start("support", data=tmp_path / "data", llm="claude")
    try:
        ticket = await support.run("question")
        trouble = await support.until(ticket, "writer")
        assert "claude failed" in trouble["text"] and trouble["text"].endswith("the template is used")
        assert (await support.until(ticket, "reply"))["by"] == "template"
    finally:
        await support.stop()


def test_an_event_reads_as_a_sentence_without_process_ids() -> None:
    up = Event(kind="agent_up", agent="resolver", pid=7, text="resolver up (pid 7)")
    killed = Event(kind="killed", agent="resolver", pid=7, text="resolver pid 7 (SIGKILL, by code)")
    held = Event(kind="holding", agent="resolver", pid=7, ticket="t-1", text="holding 8 s at the policy step")
    assert [sentence(e) for e in (up, killed, held)] == [
        "resolver up",
        "resolver (SIGKILL, by code)",
        "resolver, t-1: holding 8 s at the policy step",
    ]


def run(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "desk", *arguments],
        cwd=ROOT,
        env={**os.environ, "DESK_DATA": str(data)},
        capture_output=True,
        text=True,
        timeout=60,
    )


async def test_the_demo_holds_and_reset_forgets_it(tmp_path: Path) -> None:
    demo = await asyncio.to_thread(run, "demo", data=tmp_path)
    assert demo.returncode == 0, demo.stderr
    lines = demo.stdout.splitlines()
    assert lines[-1] == "ticket closed, looked up once, refunded once"
    assert any("replay from checkpoint, 2 turn(s) since: order_lookup, its result" in line for line in lines)
    reset = await asyncio.to_thread(run, "reset", data=tmp_path)
    assert (reset.returncode, os.listdir(tmp_path)) == (0, [])
    nothing = await asyncio.to_thread(run, "reset", "demo", data=tmp_path)
    assert nothing.returncode == 1 and "There is no desk 'demo'" in nothing.stderr
