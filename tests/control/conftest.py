"""One running support desk for all tests of a module, on a folder and a stack of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from desk.control import start
from desk.control.support import SupportDesk


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desks")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def support(data: Path) -> AsyncIterator[SupportDesk]:
    support = await start("support", data=data)
    yield support
    await support.stop()
