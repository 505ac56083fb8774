"""Both desks on a stack started elsewhere, where there is no embedded one: the same results, in the protocol's words."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from desk.proving.operations import unlisted
from desk.proving.relay import Relay
from desk.proving.stage import python

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def without_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout whose desk/stack can neither be read nor, by someone who may read anything, be imported."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "desk").mkdir()
    for entry in (ROOT / "desk").iterdir():
        if entry.name != "stack":
            (root / "desk" / entry.name).symlink_to(entry)
    (root / "data").symlink_to(ROOT / "data")
    stack = root / "desk" / "stack"
    stack.mkdir()
    (stack / "__init__.py").write_text("raise ImportError('there is no embedded stack here')\n")
    stack.chmod(0)
    yield root
    stack.chmod(0o700)


async def run(folder: Path, root: Path, **environment: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", str(Path(__file__).parent / "anywhere.py"), str(folder),
        stdout=asyncio.subprocess.PIPE, cwd=folder, env={**os.environ, "PYTHONPATH": str(root), **environment},
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Relay, str]]:
    """A way to a stack that this desk did not start; everything that is asked of it goes by."""
    stack = await python("-m", "desk.stack", "--data", str(tmp_path_factory.mktemp("elsewhere")))
    where = json.loads(await stack.stdout.readline())["connection_string"]
    login, _, address = where.rpartition("@")
    host, _, port = address.partition(":")
    relay = Relay(host, int(port))
    await relay.open()
    yield relay, f"{login}@127.0.0.1:{relay.port}"
    await relay.close()
    stack.terminate()
    await stack.wait()


async def test_the_same_results_and_nothing_the_protocol_does_not_list(
    tmp_path: Path, without_stack: Path, elsewhere: tuple[Relay, str]
) -> None:
    relay, connection = elsewhere
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here = await run(tmp_path / "here", ROOT, LASER_CONNECTION_STRING="")
    there = await run(tmp_path / "there", without_stack, LASER_CONNECTION_STRING=connection)
    assert here.pop("stack") and not there.pop("stack")
    assert there == here
    assert here["support"]["counts"]["paid"] == 1 and all(c["holds"] for c in here["fleet"]["checks"])
    assert "operation 160" in relay.codes and unlisted(relay.codes) == []
