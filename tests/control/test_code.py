"""Other code in an agent's place: what cannot be an agent is refused in a sentence, what can is a process at once."""

from pathlib import Path

import pytest

from desk.control import DeskError, code, trial
from desk.control.support import SupportDesk

STARTS_OVER = """
from desk.support.resolver import *

async def resolve(desk, session, body):
    record = await desk.get_order(body.get("order"))
    await desk.hold()
    await finish(desk, session, body, record)

async def main(me):
    await serve(me, {"resolve": resolve, "decide": decide})
"""
CLERK = """
from desk.support.agent import serve

async def count(desk, session, body):
    await desk.event("closed", text=str(len(body["words"])))

async def main(me):
    await serve(me, {"count": count})
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = (1,\n", "Line 2: SyntaxError: '(' was never closed."),
        ("def f():\nreturn 1\n", "Line 3: IndentationError: expected an indented block after function"),
        ("import nowhere\n", "Line 2: ModuleNotFoundError: No module named 'nowhere'."),
        ("\n\nsum(nobody)\n", "Line 4: NameError: name 'nobody' is not defined."),
        (
            "async def main(me):\n    return [recrod for _ in 'ab']\n",
            "Line 3: NameError: name 'recrod' is not defined.",
        ),
        ("raise SystemExit\n", "Line 2: SystemExit: no reason given."),
        ("print('hello')\n", "There is no main"),
        ("def main(me): ...\n", "main is not a coroutine"),
        ("async def main(): ...\n", "main takes one argument"),
        ("import json\n\nasync def main(me):\n    return json.dumps(len([]))\n", ""),
    ],
)
def test_what_cannot_be_an_agent_is_one_sentence_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    module = code.write(tmp_path, f"tried-{abs(hash(text))}", text)
    said = trial.refusal(tmp_path / "modules", module)
    assert said.startswith(says) and bool(said) is bool(says)


async def test_it_is_tried_in_a_process_of_its_own(tmp_path: Path) -> None:
    module = code.write(tmp_path, "clerk", "import os\nos._exit(3)\n")
    assert (await code.refusal(tmp_path, module)).startswith("Importing it ended the process")


def test_versions_have_names_of_their_own(tmp_path: Path) -> None:
    assert [code.write(tmp_path, "routing-1", "") for _ in range(2)] == ["routing_1_1", "routing_1_2"]


@pytest.mark.parametrize("name", ["", "Resolver", "../x", "a b", "1st", "x_"])
def test_a_name_no_module_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(DeskError, match="cannot be called"):
        code.write(tmp_path, name, "")


def test_open_tickets_and_whose_hands_they_are_in() -> None:
    def event(kind: str, ticket: str | None, pid: int, step: str | None = "s") -> dict:
        return {"kind": kind, "ticket": ticket, "pid": pid, "step": step}

    events = [
        event("agent_up", None, 7),
        event("triage", "t-1", 1),
        event("closed", "t-1", 1),
        event("done", "t-1", 1),
        event("holding", "t-2", 7),
        event("asked", "t-3", 7),
        event("done", "t-3", 7),
    ]
    assert code.open_tickets(events, 7) == {"t-2": True, "t-3": False}


@pytest.mark.asyncio(loop_scope="module")
class TestOnADesk:
    async def test_a_ticket_in_its_hands_meets_the_new_code_and_the_timeline_says_so(
        self, support: SupportDesk
    ) -> None:
        await support.restart("resolver", die_at="holding")  # it stands still there
        ticket = await support.open_ticket("duplicate")
        await support.until(ticket, "holding")
        await support.use_code("resolver", STARTS_OVER)
        told = await support.until(ticket, "new_code")
        assert repr(told) == f"resolver, {ticket}: new code, in the middle of this ticket"
        await support.restart("resolver", die_at="")
        await support.see_through(ticket)
        assert (support.counts(ticket).looked_up, support.counts(ticket).paid) == (2, 1)

    async def test_a_killed_process_is_replaced_by_one_of_the_same_code(self, support: SupportDesk) -> None:
        await support.use_code("resolver", STARTS_OVER)
        ticket = await support.run("duplicate", kill="resolver", at="holding")
        assert support.counts(ticket).held == 2

    async def test_a_refused_cell_changes_nothing_and_shipped_is_shipped_again(
        self, support: SupportDesk
    ) -> None:
        before = support.processes["billing"].pid
        with pytest.raises(
            DeskError, match=r"^Line 2: SyntaxError: .*The billing that was running still runs\.$"
        ):
            await support.use_code("billing", "def")
        assert support.processes["billing"].pid == before
        await support.use_shipped()
        assert list(support.shipped) == ["triage", "resolver", "billing"]
        ticket = await support.run("duplicate", kill="resolver", at="holding")
        assert support.counts(ticket).held == 1

    @pytest.mark.parametrize(
        ("main", "says"), [("...", "ended at once"), ("raise ValueError('no')", "does not stay up")]
    )
    async def test_what_does_not_stay_up_is_taken_away_again(
        self, support: SupportDesk, main: str, says: str
    ) -> None:
        with pytest.raises(DeskError, match=rf"{says}.* The billing that was running runs again\.$"):
            await support.use_code("billing", f"async def main(me): {main}")
        assert "billing" in support.shipped
        assert support.counts(await support.run("duplicate")).paid == 1

    async def test_a_new_name_is_a_new_agent_and_has_no_shipped_code(self, support: SupportDesk) -> None:
        await support.use_code("clerk", CLERK)
        job = await support.give("clerk", "count", {"words": ["one", "two"]})
        assert (await support.until(job, "closed"))["text"] == "2"
        with pytest.raises(DeskError, match="There is no shipped agent named 'clerk'"):
            await support.use_shipped("clerk")
