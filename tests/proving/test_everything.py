"""The stack, the supervisor, the kernel, everything at once: resumed, a desk goes on where it was. Long runs: the command."""

import argparse
import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from desk.proving import everything, lives
from desk.proving.everything import Job, Kept, Row, jobs, report, spared
from desk.proving.lives import BIRTH, GROUP, KERNEL, STACK, SUPERVISOR, Outcome, live, undisturbed
from desk.proving.plays import DELIVERY, SUPPORT
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
        assert found.violations == [] and found.deaths > 0


SCRIPTED = """
import json, subprocess, sys
def say(**said):
    print(json.dumps(said), flush=True)
resumed = "--resume" in sys.argv
below = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
say(up={"supervisor": below.pid}, connection="second stack" if resumed else "first stack")
say(events=9, opened=True)
say(events=10)
if not resumed:
    below.wait()  # whoever kills it does so now: what comes next is written while it dies
say(done={"stream": "s"})
sys.stdin.read()
"""


async def test_done_while_a_death_is_on_its_way_is_asked_of_the_desk_that_was_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def program(*arguments: str, **_: Any) -> asyncio.subprocess.Process:
        return await python("-c", SCRIPTED, *arguments)

    async def judge(owner: lives.Owner, found: Outcome, expected: Any) -> None:
        asked.append(owner.connection)

    monkeypatch.setattr(lives, "python", program)
    monkeypatch.setattr(lives, "judge", judge)
    found = await live(DELIVERY, tmp_path, [SUPERVISOR], 1, Outcome(DELIVERY, "nothing", events=1))
    assert (found.deaths, found.resumed, found.violations) == (1, 1, [])
    assert asked == ["second stack"]


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
    chaos = row(SUPPORT, everything.CHAOS, deaths=3, whose={"triage": 2, "stack": 1})
    text = report([found, broken, chaos])
    assert not spared([found, chaos]) and spared(
        [row(SUPPORT, everything.CHAOS, whose={"triage": 2}), chaos][:1]
    )
    assert "| 3; of 3 it is known whose: stack 1, triage 2 |" in text
    assert "| support | kernel | 1 | 0.5 | 2 | 2 | 0 | 1 closed |" in text
    assert "- Start it again." in text and "- delivery, stack: two disputes" in text
    assert text.endswith("deaths: 8, violations: 1\n")


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
        return Outcome(desk, "", deaths=min(len(dying), 2))  # done before the third

    monkeypatch.setattr(everything, "live", lived)
    monkeypatch.setattr(everything, "undisturbed", lambda desk, folder: lived(desk, folder, (), 0, None))
    kept = Kept(tmp_path / "everything.md")
    kept.add(row(SUPPORT, everything.CHAOS, seconds=61.0))
    runs = everything.Runs(kept, tmp_path, 7)
    await runs.do(Job(everything.CHAOS, SUPPORT, (), ("--chaos", "2"), 60.0))
    assert calls == []  # its time is over
    await runs.do(Job(KERNEL, SUPPORT, (KERNEL,) * 3))
    await runs.do(Job(KERNEL, SUPPORT, (KERNEL,) * 3))
    assert calls == [((), 0, ()), ((KERNEL,) * 3, 7, ()), ((KERNEL,), 8, ())]
