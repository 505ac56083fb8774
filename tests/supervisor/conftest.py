"""Probe desks, ended after each test."""

import contextlib
from pathlib import Path

import pytest

from tests.supervisor.running import Desk, probe

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def probes_are_importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
async def start(tmp_path):
    """`await start(("a", "echo"), …)`: a desk of these probes."""
    async with contextlib.AsyncExitStack() as stack:

        async def begin(*probes):
            desk = await Desk.start(tmp_path, *(probe(name, tmp_path, module) for name, module in probes))
            stack.push_async_callback(desk.close)
            return desk

        yield begin
