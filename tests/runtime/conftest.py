"""A stack for a room's tests, and a client on a stream of its own."""

import os
import uuid

import pytest

from desk.runtime.connect import connect


@pytest.fixture(scope="session")
def connection():
    return os.environ["TEST_CONNECTION"]


@pytest.fixture
async def laser(connection):
    stream = f"test-{uuid.uuid4().hex[:8]}"
    laser = await connect(connection, stream)
    await laser.stream(stream).ensure()
    yield laser
    await laser.close()
