"""The stack, the supervisor, the kernel, everything at once: resumed, a desk goes on where it was. Long runs: the command."""

import argparse
import asyncio
from pathlib import Path

import pytest
import pytest_asyncio

from desk.proving.everything import (
    BIRTH,
    GROUP,
    KERNEL,
    STACK,
    SUPERVISOR,
    Outcome,
    live,
    report,
    undisturbed,
)
from desk.proving.plays import DELIVERY, SUPPORT

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


def test_the_report_names_what_was_repeated_and_said() -> None:
    found = Outcome(
        SUPPORT, "kernel", deaths=2, resumed=2, says=["Start it again."], raw={"closed": 15, "paid": 4}
    )
    broken = Outcome(DELIVERY, "stack", deaths=3, violations=["two disputes"], raw={"disputes": 2})
    told = argparse.Namespace(stack=3, each=2, minutes=0.0, seed=7)
    text = report([(found, {"closed": 14, "paid": 4}), (broken, {"disputes": 1})], told)
    assert "| support | kernel | 1 | 2 | 2 | 0 | 1 closed |" in text
    assert "- Start it again." in text and "- delivery, stack: two disputes" in text
    assert text.endswith("deaths: 5, violations: 1\n")
