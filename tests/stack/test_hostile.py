"""Rubbish, floods and silence on one connection end that connection and cost the others nothing."""

import asyncio
import os
import random
import struct

import psutil
import pytest
import pytest_asyncio

from desk.stack.wire import frame
from desk.stack.wire.codes import PROTOCOL_VERSION, Code, Eviction, Operation, Status
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import poll_body, send_body
from tests.stack.raw import RawClient, login_body
from tests.stack.running import stack_process
from tests.stack.serving import connection_string, serving

CLOSED = (asyncio.IncompleteReadError, ConnectionError)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory):
    async with stack_process(tmp_path_factory.mktemp("hostile")) as running:
        yield running
        code, complaints = await running.stop()
        assert (code, complaints) == (0, "")


@pytest_asyncio.fixture(loop_scope="module")
async def client(stack):
    made = await RawClient.connect(stack.connection)
    yield made
    assert await made.ping(), "a well-behaved connection was hurt"
    made.close()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def stranger(stack) -> RawClient:
    return await RawClient.connect(stack.connection, login=False)


async def test_before_a_login_only_login_and_ping_are_answered(stack, client):
    other = await stranger(stack)
    assert await other.ping()
    for code in (Code.STREAMS, Code.POLL, Code.SEND, Code.CLUSTER, 1_000_000, 12345):
        assert await other.ask(code) is Eviction.NO_SESSION
    other.close()


async def test_a_session_of_somebody_else_is_no_session(stack, client):
    other = await stranger(stack)
    other.session = client.session
    assert await other.ask(Code.STREAMS) is Eviction.NO_SESSION
    other.close()


async def test_after_a_logout_nothing_is_answered(stack, client):
    other = await RawClient.connect(stack.connection)
    logout = frame.encode_request(Operation.LOGOUT, client=other.client, session=other.session)
    assert (await other.exchange(logout)).status == 0
    assert await other.ask(Code.STREAMS) is Eviction.NO_SESSION
    other.close()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (login_body("iggy", "wrong"), Eviction.BAD_CREDENTIALS),
        (
            U32.pack(PROTOCOL_VERSION) + name("raw") + name("0") + name("token") + U32.pack(0),
            Eviction.BAD_TOKEN,
        ),
        (login_body("iggy", "x", PROTOCOL_VERSION + (1 << 10)), Eviction.INCOMPATIBLE),
        (login_body("iggy", "x", PROTOCOL_VERSION - 1), Eviction.INCOMPATIBLE),
        (U32.pack(PROTOCOL_VERSION) + b"\xff" * 9, Eviction.MALFORMED_LOGIN),
        (b"", Eviction.MALFORMED_LOGIN),
    ],
    ids=["password", "token", "newer", "older", "rubbish", "empty"],
)
async def test_logins_that_are_refused(stack, client, body, reason):
    other = await stranger(stack)
    assert await other.register(body) is reason
    assert await other.ping()
    other.close()


async def test_a_wrong_password_is_slowed_and_slows_only_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("desk.stack.server.WRONG_LOGIN_SECONDS", 600)
    async with serving(tmp_path) as server:
        well_behaved = await RawClient.connect(connection_string(server))
        other = await RawClient.connect(connection_string(server), login=False)
        guess = frame.encode_request(
            Operation.REGISTER, body=login_body("iggy", "wrong"), client=other.client
        )
        other.writer.write(guess)
        assert await well_behaved.ping()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(other.reader.readexactly(1), 0.2)
        other.close()
        well_behaved.close()


@pytest.mark.parametrize("size", [0, 255, frame.LARGEST_BEFORE_LOGIN + 1, 2**32 - 1])
async def test_a_size_out_of_bounds_closes_the_connection(stack, client, size):
    other = await stranger(stack)
    header = bytearray(other.request(Code.PING))
    struct.pack_into("<I", header, 48, size)
    with pytest.raises(CLOSED):
        await other.exchange(bytes(header))


async def test_a_frame_of_another_kind_closes_the_connection(stack, client):
    other = await RawClient.connect(stack.connection)
    wrong = bytearray(other.request(Code.PING))
    wrong[60] = 8
    with pytest.raises(CLOSED):
        await other.exchange(bytes(wrong))


async def test_rubbish_bodies_are_refused_or_answered_and_never_an_error_of_ours(stack, client):
    other = await RawClient.connect(stack.connection)
    chance = random.Random(7)
    for code in [*Code, 1_000_000, 1_000_002, 1_000_003, 1_000_020, 1_000_300, 1_000_301, 1_000_999]:
        for size in (0, 1, 7, 40, 300):
            reply = await other.ask(code, chance.randbytes(size))
            assert isinstance(reply, frame.Reply), code
            assert reply.status != Status.ERROR, code
    other.close()


async def test_rubbish_instead_of_frames_hurts_nobody(stack, client):
    chance = random.Random(11)
    for _ in range(50):
        other = await stranger(stack)
        other.writer.write(chance.randbytes(chance.randint(1, 2_000)))
        other.close()
    assert await client.ping()


async def test_a_promised_size_takes_no_memory_until_it_comes(stack, client):
    before = psutil.Process(stack.pid).memory_info().rss
    others = [await RawClient.connect(stack.connection) for _ in range(40)]
    for other in others:
        header = bytearray(other.request(Code.SEND))
        struct.pack_into("<I", header, 48, frame.LARGEST)
        other.writer.write(bytes(header))
    assert await client.ping()
    assert psutil.Process(stack.pid).memory_info().rss - before < 20_000_000
    for other in others:
        other.close()


async def test_five_hundred_idle_connections(stack, client):
    others = await asyncio.gather(*(stranger(stack) for _ in range(500)))
    assert await client.ping()
    for other in others:
        other.close()


async def test_a_client_that_never_reads_is_not_read_either(stack, client):
    await client.ask(Code.CREATE_STREAM, name("s"))
    await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("flood"))
    await client.ask(Code.SEND, send_body(os.urandom(1_000_000), topic="flood"))
    before = psutil.Process(stack.pid).memory_info().rss
    deaf = await RawClient.connect(stack.connection)
    deaf.writer.transport.pause_reading()
    wanted = deaf.request(Code.POLL, poll_body(topic="flood"))
    for _ in range(200):
        deaf.writer.write(wanted)
    assert await client.ping()
    await client.ask(Code.POLL, poll_body(topic="flood"))
    assert psutil.Process(stack.pid).memory_info().rss - before < 40_000_000
    deaf.close()


async def test_requests_sent_without_waiting_are_answered_in_order(stack, client):
    numbers = range(100)
    for number in numbers:
        raw = bytearray(client.request(Code.PING if number % 2 else Code.STREAMS))
        struct.pack_into("<Q", raw, 168, number)
        client.writer.write(bytes(raw))
    found = []
    for _ in numbers:
        header = await client.reader.readexactly(frame.HEADER)
        await client.reader.readexactly(U32.unpack_from(header, 48)[0] - frame.HEADER)
        found.append(struct.unpack_from("<Q", header, 200)[0])
    assert found == list(numbers)
