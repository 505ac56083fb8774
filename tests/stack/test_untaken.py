"""Clients that never read, many at once: closed one by one, while whoever reads loses nothing (real sockets)."""

import asyncio
import socket

import pytest

from desk.stack.__main__ import HOST
from desk.stack.untaken import Untaken
from desk.stack.wire import frame
from desk.stack.wire.codes import Code
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import poll_body, polled, send_body
from tests.stack.raw import RawClient, login_body
from tests.stack.serving import connection_string, serving

PATIENCE = 100  # seconds
MIB = 1024 * 1024
RECORDS = [bytes((number,)) * MIB for number in range(12)]  # more than the kernel takes for one connection
MOST = 3 * len(RECORDS) * MIB  # bytes unread in all
CROWD = 12


@pytest.fixture
async def server(tmp_path):
    async with serving(tmp_path) as running:
        running.untaken = Untaken(MOST)
        yield running


async def reader(server):
    return await RawClient.connect(connection_string(server))


async def never_reading(server):
    """A client that asks for all records and then reads nothing; its own buffer is small."""
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, (HOST, server.engine.broker.port))
    client = RawClient(*await asyncio.open_connection(sock=narrow))
    reply = await client.register(login_body("iggy", "iggy"))
    assert isinstance(reply, frame.Reply)
    client.session = int.from_bytes(reply.body[4:12], "little")
    client.writer.transport.pause_reading()
    client.writer.write(client.request(Code.POLL, poll_body()))
    return client


def unread(server):
    """Bytes of replies that the stack holds for all clients."""
    return sum(each.unread for each in server.connections.values())


async def fill(client):
    await client.ask(Code.CREATE_STREAM, name("s"))
    await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
    for record in RECORDS:
        await client.ask(Code.SEND, send_body(record))


async def all_of(client):
    reply = await client.ask(Code.POLL, poll_body())
    return [record.payload for record in polled(reply.body)]


async def took_all(client):
    """Read at last: whether the whole reply comes, or the connection was closed on the way."""
    client.writer.transport.resume_reading()
    try:
        reply = await client.read()
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    assert [record.payload for record in polled(reply.body)] == RECORDS
    return True


async def test_clients_that_never_read_are_bounded_together_and_a_reader_loses_nothing(server, caplog):
    async with asyncio.timeout(PATIENCE):
        client = await reader(server)
        await fill(client)
        crowd = []
        for _ in range(CROWD):
            crowd.append(await never_reading(server))
            assert await all_of(client) == RECORDS
            assert unread(server) <= MOST
        taken = [await took_all(each) for each in crowd]
        assert await all_of(client) == RECORDS
        kept = sum(taken)
        assert taken == [False] * (CROWD - kept) + [True] * kept, "who has held most for longest goes first"
        assert 2 <= kept <= 4
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == CROWD - kept
        assert all("does not read" in text for text in told)
        for each in (client, *crowd):
            each.close()


async def test_who_never_reads_but_is_alone_is_left_alone(server, caplog):
    async with asyncio.timeout(PATIENCE):
        client = await reader(server)
        await fill(client)
        for _ in range(3):  # one after the other: what has been taken counts no more
            late = await never_reading(server)
            assert await all_of(client) == RECORDS
            assert await took_all(late)
            late.close()
        assert not caplog.records
        client.close()


class Waits:
    """A connection: how many bytes are not taken."""

    def __init__(self, unread):
        self.unread = unread


def test_who_reads_slowly_outlives_who_came_later_and_reads_nothing():
    untaken, slow, idle, late = (
        Untaken(150 * MIB),
        Waits(60 * MIB),
        Waits(60 * MIB),
        Waits(60 * MIB),
    )
    assert untaken.paused(slow, 0.0) == []
    slow.unread = 30 * MIB
    assert untaken.paused(idle, 3.0) == []
    assert untaken.paused(late, 4.0) == [idle]


def test_a_newcomer_is_not_closed_for_those_who_wait():
    untaken, old = Untaken(100), [Waits(40), Waits(50)]
    assert [untaken.paused(each, 0.0) for each in old] == [[], []]
    newcomer = Waits(60)
    assert untaken.paused(newcomer, 1.0) == [old[1]]
    untaken.gone(newcomer)
    assert untaken.paused(Waits(60), 2.0) == []


def test_as_many_as_needed_are_closed_at_once():
    untaken, old = Untaken(100), [Waits(30) for _ in range(3)]
    for number, each in enumerate(old):
        assert untaken.paused(each, float(number)) == []
    assert untaken.paused(Waits(70), 9.0) == old[:2]
