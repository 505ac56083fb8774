"""A disk that fills up under load: refused in one sentence, read on, written again when there is room."""

import resource

import pytest

from desk.stack.wire.codes import Code
from desk.stack.wire.frame import Reply
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import poll_body, polled, send_body
from tests.stack.raw import RawClient
from tests.stack.running import stack_process

ROOM = 3_000_000  # bytes a file may have: the kernel refuses writes beyond, as a full disk does
BODY = b"x" * 20_000


async def publish(client: RawClient, number: int) -> Reply:
    reply = await client.ask(Code.SEND, send_body(b"%d " % number + BODY))
    assert isinstance(reply, Reply)
    return reply


async def read(client: RawClient) -> list[int]:
    reply = await client.ask(Code.POLL, poll_body(count=100_000))
    assert isinstance(reply, Reply) and not reply.status
    return [int(record.payload.split()[0]) for record in polled(reply.body)]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process: Linux only")
async def test_a_disk_that_fills_up_costs_what_was_refused_and_nothing_else(tmp_path):
    told = []
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        await client.ask(Code.CREATE_STREAM, name("s"))
        await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
        resource.prlimit(stack.pid, resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
        for number in range(400):
            if (await publish(client, number)).status:
                break
            told.append(number)
        else:
            pytest.fail("the disk never filled up")
        assert (await publish(client, 1_000)).status, "still full"
        assert await read(client) == told
        assert await client.ping()
        resource.prlimit(stack.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert not (await publish(client, 2_000)).status, "there is room again"
        told.append(2_000)
        assert await read(client) == told
        client.close()
        code, complaints = await stack.stop()
        assert code == 0
        assert "Traceback" not in complaints
        assert complaints.strip(), "nobody said why"
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        assert await read(client) == told
        client.close()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process: Linux only")
async def test_a_kill_on_a_full_disk_loses_nothing_that_was_told(tmp_path):
    told = []
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        await client.ask(Code.CREATE_STREAM, name("s"))
        await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
        resource.prlimit(stack.pid, resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
        refused = 0
        for number in range(400):
            if (await publish(client, number)).status:
                refused += 1
            else:
                told.append(number)
            if refused == 3:
                break
        await stack.kill()
        client.close()
        await stack.start()
        client = await RawClient.connect(stack.connection)
        assert await read(client) == told
        assert not (await publish(client, 3_000)).status
        client.close()
