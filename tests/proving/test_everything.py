"""The stack, the supervisor, the kernel, everything at once: resumed, a desk goes on where it was. Long runs: the command."""

import argparse
import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cbor2
import pytest
import pytest_asyncio

from desk.control.errors import DeskError
from desk.proving import everything, lives, owner
from desk.proving.everything import Job, Kept, Row, jobs, report, undone
from desk.proving.lives import BIRTH, GROUP, KERNEL, STACK, SUPERVISOR, Outcome, live, undisturbed
from desk.proving.plays import DELIVERY, SUPPORT
from desk.proving.rows import CodeChanged, code
from desk.proving.stage import python

in_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What comes of each desk's work when nobody dies."""
    both = await asyncio.gather(
        *(undisturbed(desk, tmp_path_factory.mktemp("calm")) for desk in (SUPPORT, DELIVERY))
    )
    return {found.desk: found for found in both}


@in_one_loop
async def test_a_ticket_of_each_scenario_has_its_refunds(calm: dict[str, Outcome]) -> None:
    assert calm[SUPPORT].raw["paid"] == 4 and calm[SUPPORT].raw["closed"] == 14
    assert calm[DELIVERY].raw["disputes"] == 1 and len(calm[DELIVERY].outcome["exceptions"]) == 5


@in_one_loop
async def test_whatever_dies_the_work_goes_on_where_it_was(tmp_path: Path, calm: dict[str, Outcome]) -> None:
    dying = {SUPPORT: [BIRTH, STACK, SUPERVISOR], DELIVERY: [KERNEL, STACK, SUPERVISOR, GROUP]}
    both = await asyncio.gather(
        *(live(desk, tmp_path / desk, deaths, 3, calm[desk]) for desk, deaths in dying.items())
    )
    for found in both:
        assert found.violations == []
        assert found.deaths == len(dying[found.desk])
        told = {sentence.partition(":")[2] for sentence in found.says}  # there may be no desk yet to resume
        assert told - {" start it without resume."} == {" start the desk again."}
    assert both[0].raw["paid"] == 4


@in_one_loop
async def test_chaos_with_the_stack_in_it(tmp_path: Path, calm: dict[str, Outcome]) -> None:
    both = await asyncio.gather(
        *(live(desk, tmp_path / desk, [], 5, calm[desk], "--chaos", "0.5", "--seed", "5") for desk in calm)
    )
    for found in both:
        assert found.violations == [] and found.deaths == sum(found.whose.values()) > 0
        assert found.loose > 0.5 * found.deaths / 2  # a kill every half a second, or later


SCRIPTED = """
import json, subprocess, sys
def say(**said):
    print(json.dumps(said), flush=True)
resumed = "--resume" in sys.argv
below = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
say(up={"supervisor": below.pid}, connection="second stack" if resumed else "first stack")
say(events=9, opened=True)
say(events=10)
if not resumed and "--fallen" not in sys.argv:
    below.wait()  # whoever kills it does so now: what comes next is written while it dies
    if "--silent" in sys.argv:
        sys.exit(1)
say(done={"stream": "s"}, loose=2.5, taken={"stack": 1}, fallen=sys.argv.count("--fallen"))
sys.stdin.read()
"""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An owner and a judge without a desk; which stacks the judge was asked about, and what was expected."""
    asked: list[Any] = []

    async def program(*arguments: str, **_: Any) -> asyncio.subprocess.Process:
        return await python("-c", SCRIPTED, *arguments)

    async def judge(owner: lives.Owner, found: Outcome, expected: Any) -> None:
        asked.append((owner.connection, expected))

    monkeypatch.setattr(lives, "python", program)
    monkeypatch.setattr(lives, "judge", judge)
    return asked


@pytest.mark.parametrize("desk", [SUPPORT, DELIVERY])
async def test_done_while_a_death_is_on_its_way_is_asked_of_the_desk_that_was_resumed(
    tmp_path: Path, scripted: list[Any], desk: str
) -> None:
    calm = Outcome(desk, "nothing", events=1, outcome={"paid": [1]})
    found = await live(desk, tmp_path, [SUPERVISOR], 1, calm)
    assert found.deaths - sum(found.whose.values()) == 1
    assert (found.resumed, found.violations, found.loose) == (1, [], 2.5)
    assert scripted == [("second stack", {"paid": [1]})]  # and compared with the undisturbed work


async def test_a_supervisor_that_dies_leaves_a_sentence(tmp_path: Path, scripted: list[Any]) -> None:
    found = await live(SUPPORT, tmp_path, [SUPERVISOR], 1, Outcome(SUPPORT, "", events=1), "--silent")
    assert found.violations == ["it ended without a sentence"]


async def test_a_stack_that_dies_by_itself_is_a_violation(tmp_path: Path, scripted: list[Any]) -> None:
    found = await live(SUPPORT, tmp_path, [], 1, Outcome(SUPPORT, "", events=1), "--fallen")
    assert found.violations == ["the stack died 1 times, killed 0 times"]


JUDGE = "import json, sys; run = json.loads(input()); print(json.dumps({'violations': [run['expected']], 'raw': {}}))"


@pytest.mark.parametrize("desk", [SUPPORT, DELIVERY])
async def test_both_desks_are_compared_with_the_undisturbed_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, desk: str
) -> None:
    judge, found = tmp_path / "judge.py", Outcome(desk, "")
    judge.write_text(JUDGE)
    monkeypatch.setitem(lives.JUDGES, desk, str(judge))
    program = lives.Owner(await python("-c", ""))
    program.done = {"expected": None}
    await lives.judge(program, found, "what it comes to")
    assert found.violations == ["what it comes to"]
    await program.process.wait()


def test_only_who_lived_and_was_seen_to_die_counts() -> None:
    waiting = [sys.executable, "-c", "input()"]
    own, *stacks = [subprocess.Popen(waiting, stdin=subprocess.PIPE) for _ in range(3)]
    process: Any = own
    program = lives.Owner(process)
    program.opened, program.pids = True, {STACK: stacks[0].pid}
    assert program.working and program.kill(STACK)
    assert not program.working  # until another takes its place
    assert program.counted == 0  # and the supervisor has it that it died
    program.deaths = {STACK: 1}
    assert program.counted == 1
    os.waitid(os.P_PID, stacks[0].pid, os.WEXITED | os.WNOWAIT)
    assert not program.kill(STACK) and program.counted == 1  # a zombie
    stacks[0].communicate()
    assert not program.kill(STACK) and program.counted == 1  # gone
    program.pids = {STACK: stacks[1].pid}
    assert program.working and program.kill(STACK) and program.counted == 1
    assert program.kill(KERNEL)
    for process in (stacks[1], own):
        process.communicate()
    assert not program.kill(KERNEL) and not program.kill(GROUP)


def test_whom_the_monkey_took_is_not_who_left_by_itself() -> None:
    def event(kind: str, agent: str, pid: int, **fields: str) -> dict[str, Any]:
        return {"kind": kind, "agent": agent, "pid": pid, **fields}

    rows = [
        event("killed", "triage", 1, by="chaos"),
        event("killed", "triage", 1, by="chaos"),  # written twice
        event("killed", "triage", 2, by="watchdog"),
        event("killed", STACK, 3, by="chaos"),
        event("killed", "billing", 4, by="chaos"),  # and it was gone already
        event("died", "resolver", 5),
        event("died", STACK, 6),
    ]
    assert owner.taken(rows, {"triage": 3, STACK: 2, "resolver": 1, "billing": 0}) == {STACK: 1, "triage": 1}
    assert owner.fallen(rows) == 1


class Desk:
    """A support desk whose stack refuses the first of each; sent: tickets whose message is in the lane."""

    def __init__(self, sent: Sequence[str]) -> None:
        self.lane, self.laser = self, self
        self.did, self.seen = Counter[tuple[str, str]](), Counter[str]()
        records = [{"idempotency_key": ticket} for ticket in sent]
        self._pages = [[{"a session": "begun"}, *records[:3]], records[3:], []]

    def topic(self, name: str) -> "Desk":
        return self

    def replay(self) -> "Desk":
        return self

    async def poll(self) -> list[SimpleNamespace]:
        self.did["read", "the lane"] += 1
        if self.did["read", "the lane"] == 1:
            raise DeskError("the stack was away")
        return [SimpleNamespace(payload=cbor2.dumps(record)) for record in self._pages.pop(0)]

    async def begin(self, ticket: str) -> None:
        self._do("begin", ticket)

    async def send(self, ticket: str) -> None:
        self._do("send", ticket)

    async def see_through(self, ticket: str, timeout: float) -> None:
        self.seen[ticket] += 1

    def _do(self, what: str, ticket: str) -> None:
        self.did[what, str(ticket)] += 1
        if self.did[what, ticket] == 1:
            raise DeskError("the stack was away")


async def test_resumed_the_owner_opens_whom_nobody_has_heard_of_and_nobody_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"t-{n}" for n in range(1, 15)]
    desk: Any = Desk([name for name in names if name != "t-5"])
    await owner._tickets(desk, 1, resumed=True)
    # it goes on sending without beginning anew
    assert desk.did == {("read", "the lane"): 4, ("begin", "t-5"): 2, ("send", "t-5"): 2}
    assert desk.seen == dict.fromkeys(names, 1)
    assert "opened" in capsys.readouterr().out


def test_more_rounds_are_other_orders_where_there_are_any() -> None:
    first, again = owner._ticket("duplicate", 0, 1), owner._ticket("duplicate", 1, 15)
    assert (first, again) == ("t-1", "t-15") and first.text != again.text
    refunds = [sum(owner._refunds(play, times) for play in owner._TICKETS) for times in (0, 1, 5)]
    assert refunds == [4, 2, 1]  # nobody gets one charge back twice


def row(desk: str, part: str, **fields: Any) -> Row:
    return Row(part, desk, **{"deaths": 0, "resumed": 0, "seconds": 30.0, **fields})


def test_the_report_names_what_was_repeated_and_said() -> None:
    found = row(
        SUPPORT, KERNEL, deaths=2, resumed=2, says=["Start it again."],
        raw={"closed": 15, "paid": 4}, calm={"closed": 14, "paid": 4},
    )  # fmt: skip
    broken = row(
        DELIVERY, STACK, deaths=3, violations=["two disputes"], raw={"disputes": 2}, calm={"disputes": 1}
    )
    chaos = row(SUPPORT, everything.CHAOS, deaths=3, loose=12.0, whose={"triage": 2, "stack": 1})
    text = report([found, broken, chaos])
    assert "| support | anybody, the stack included | 1 | 0.5 | 0.2 | 3: stack 1, triage 2 |" in text
    assert "| support | kernel | 1 | 0.5 |  | 2 | 2 | 0 | 1 closed |" in text
    assert "- Start it again." in text and "- delivery, stack: two disputes" in text
    assert text.endswith("deaths: 8, violations: 1\n")


def test_what_was_to_be_done_and_was_not_is_said_and_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, chaos = Job(KERNEL, SUPPORT, (KERNEL,) * 3), Job(everything.CHAOS, SUPPORT, (), (), 60.0, 2.0)
    few, all_three = row(SUPPORT, KERNEL, deaths=2), row(SUPPORT, KERNEL, deaths=3)
    assert list(undone([few], [kernel])) == ["support, kernel: 2 deaths of 3"]
    assert list(undone([all_three], [kernel])) == []
    name = f"support, {everything.CHAOS}"
    loose = {part: row(SUPPORT, everything.CHAOS, seconds=60.0, loose=60.0, whose=dict.fromkeys(part, 1))
             for part in [(), ("triage",), ("triage", STACK)]}  # fmt: skip
    short = row(SUPPORT, everything.CHAOS, seconds=600.0, loose=30.0, whose={STACK: 1})
    assert list(undone([short], [chaos])) == [f"{name}: 0.5 minutes of 1"]
    assert list(undone([loose[()]], [chaos])) == [f"{name}: the monkey took nobody"]
    assert list(undone([loose["triage",]], [chaos])) == [f"{name}: the monkey never took the stack"]
    assert list(undone([loose["triage", STACK]], [chaos])) == []
    assert "Not done:\n\n- support, kernel: 2 deaths of 3" in report([few], [kernel])

    async def lived(desk: str, *_: Any) -> Outcome:
        return Outcome(desk, "", deaths=1)

    monkeypatch.setattr(everything, "live", lived)
    monkeypatch.setattr(everything, "undisturbed", lambda desk, folder, *options: lived(desk))
    told = ["--part", "kernel", "--out", str(tmp_path / "everything.md"), "--each"]
    assert everything.main([*told, "5"]) == 1 and everything.main([*told, "4"]) == 0


def test_rows_of_another_desk_than_this_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "everything.md"
    kept = Kept(file)
    kept.add(row(SUPPORT, KERNEL, deaths=1))
    kept.add(row(DELIVERY, KERNEL, deaths=2))
    assert len(Kept(file).rows) == 2
    now = {SUPPORT: code(SUPPORT), DELIVERY: "changed"}
    monkeypatch.setattr("desk.proving.rows.code", now.get)
    assert [r.deaths for r in Kept(file).rows] == [1]
    with pytest.raises(CodeChanged, match=r"The code of the delivery desk, .* start again"):
        kept.add(row(DELIVERY, KERNEL, deaths=3))
    assert len(kept.rows) == 2


def test_a_desk_that_is_changed_while_it_is_tried_ends_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def lived(desk: str, *arguments: object) -> Outcome:
        monkeypatch.setattr("desk.proving.rows.code", lambda desk: "changed")
        return Outcome(desk, "", 0, 1)

    monkeypatch.setattr(everything, "live", lived)
    monkeypatch.setattr(everything, "undisturbed", lambda desk, folder, *options: lived(desk))
    file = tmp_path / "everything.md"
    assert everything.main(["--part", "kernel", "--out", str(file)]) == 1 and not file.exists()
    assert capsys.readouterr().out.count("was changed while it was tried: start again.") == 1


def test_what_has_been_run_stays_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "everything.md"
    told = argparse.Namespace(part=["kernel", "chaos"], each=2, minutes=1.0, every=2.0)
    kernels, chaos = [job for job in jobs(told) if job.dying], [job for job in jobs(told) if job.seconds]
    assert [job.dying for job in kernels] == [(KERNEL,) * 2] * 2 and len(chaos) == 2
    kept = Kept(file)
    kept.add(row(SUPPORT, chaos[0].part, deaths=4))
    kept.add(row(SUPPORT, KERNEL, deaths=2))
    again = Kept(file)
    assert [r.deaths for r in again.rows] == [2, 4] and [r.part for r in again.rows] == [
        KERNEL,
        chaos[0].part,
    ]
    assert "deaths: 6, violations: 0" in file.read_text()
    again.forget(kernels[0])
    again.add(row(SUPPORT, KERNEL, deaths=3))
    assert "deaths: 7, violations: 0" in file.read_text()


async def test_a_job_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    async def lived(desk: str, folder: Path, dying: Any, seed: int, calm: Any, *options: str) -> Outcome:
        calls.append((dying, seed, options))
        loose = 25.0 if "--chaos" in options else 0.0
        return Outcome(desk, "", deaths=min(len(dying), 2), loose=loose)  # done before the third

    monkeypatch.setattr(everything, "live", lived)
    monkeypatch.setattr(
        everything, "undisturbed", lambda desk, folder, *work: lived(desk, folder, (), 0, None)
    )
    kept = Kept(tmp_path / "everything.md")
    kept.add(row(SUPPORT, everything.CHAOS, seconds=600.0, loose=40.0))
    runs = everything.Runs(kept, tmp_path, 7)
    chaos = Job(everything.CHAOS, SUPPORT, (), ("--rounds", "2"), 60.0, 1.5)
    await runs.do(chaos)
    await runs.do(chaos)  # it has been loose for its time, however long all of that took
    monkey = ("--rounds", "2", "--chaos", "1.5", "--seed", "1")
    assert calls == [((), 0, ()), ((), 1, monkey)]
    calls.clear()
    await runs.do(Job(KERNEL, SUPPORT, (KERNEL,) * 3))
    await runs.do(Job(KERNEL, SUPPORT, (KERNEL,) * 3))
    assert calls == [((), 0, ()), ((KERNEL,) * 3, 7, ()), ((KERNEL,), 8, ())]
