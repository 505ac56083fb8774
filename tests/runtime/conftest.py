"""A stack for a room's tests, and a client on a stream of its own."""

import json
import subprocess
import sys
import uuid

import pytest

from desk.runtime.connect import connect


@pytest.fixture(scope="package")
def connection(tmp_path_factory):
    """The connection string of an embedded stack."""
    stack = subprocess.Popen(
        [sys.executable, "-m", "desk.stack", "--data", str(tmp_path_factory.mktemp("stack"))],
        stdout=subprocess.PIPE,
    )
    yield json.loads(stack.stdout.readline())["connection_string"]
    stack.terminate()
    stack.communicate()


@pytest.fixture
async def laser(connection):
    stream = f"test-{uuid.uuid4().hex[:8]}"
    laser = await connect(connection, stream)
    await laser.stream(stream).ensure()
    yield laser
    await laser.close()
