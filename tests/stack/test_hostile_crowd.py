"""Clients that dribble, guess, lag or vanish in the middle, all at once, beside one that behaves."""

import asyncio
import contextlib
import random

from desk.stack.wire import frame
from desk.stack.wire.codes import Code, Eviction, Operation
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import poll_body, polled, send_body
from tests.stack.raw import RawClient, login_body
from tests.stack.running import stack_process

GONE = (asyncio.IncompleteReadError, ConnectionError)


async def dribbler(connection: str, done: asyncio.Event) -> int:
    """A byte at a time: still answered, however slowly the frame comes."""
    client = await RawClient.connect(connection, login=False)
    answers = 0
    while not done.is_set():
        for byte in client.request(Code.PING):
            client.writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        await client.read()
        answers += 1
    client.close()
    return answers


async def guesser(connection: str, done: asyncio.Event) -> int:
    client = await RawClient.connect(connection, login=False)
    guesses = 0
    while not done.is_set():
        assert await client.register(login_body("iggy", f"guess-{guesses}")) is Eviction.BAD_CREDENTIALS
        guesses += 1
    client.close()
    return guesses


async def laggard(connection: str, done: asyncio.Event) -> int:
    """Asks for much and reads it in crumbs."""
    client = await RawClient.connect(connection)
    taken = 0
    while not done.is_set():
        client.writer.write(client.request(Code.POLL, poll_body()))
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(0.5):
                while not done.is_set():
                    taken += len(await client.reader.read(100))
                    await asyncio.sleep(0)
    client.close()
    return taken


async def vanisher(connection: str, done: asyncio.Event) -> int:
    """Logs in, joins a group, begins a frame and is gone."""
    chance, times = random.Random(5), 0
    while not done.is_set():
        client = await RawClient.connect(connection)
        await client.ask(Code.JOIN_GROUP, identifier("s") + identifier("t") + identifier("g"))
        whole = client.request(Code.SEND, send_body(b"never"))
        client.writer.write(whole[: chance.randrange(1, len(whole))])
        client.writer.transport.abort()
        times += 1
        await asyncio.sleep(0.01)
    return times


async def relogin(connection: str, done: asyncio.Event) -> int:
    """Logs in over and over on one connection and asks with the session before."""
    client = await RawClient.connect(connection)
    user, _, password = connection.rpartition("@")[0].partition(":")
    times = 0
    while not done.is_set():
        old = client.session
        reply = await client.register(login_body(user, password))
        assert isinstance(reply, frame.Reply)
        client.session = int.from_bytes(reply.body[4:12], "little")
        assert client.session > old
        stale = frame.encode_request(160, body=send_body(b"stale"), client=client.client, session=old)
        assert await client.exchange(stale) is Eviction.NO_SESSION
        times += 1
        await asyncio.sleep(0.01)
    client.writer.write(frame.encode_request(Operation.LOGOUT, client=client.client, session=client.session))
    client.close()
    return times


async def test_a_crowd_costs_the_others_nothing(tmp_path):
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        await client.ask(Code.CREATE_STREAM, name("s"))
        await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
        await client.ask(Code.CREATE_GROUP, identifier("s") + identifier("t") + name("g"))
        done = asyncio.Event()
        kinds = (dribbler, guesser, laggard, vanisher, relogin)
        crowd = [asyncio.create_task(kind(stack.connection, done)) for kind in kinds for _ in range(5)]
        for number in range(300):
            reply = await client.ask(Code.SEND, send_body(b"%d" % number))
            assert isinstance(reply, frame.Reply) and not reply.status
        done.set()
        counts = await asyncio.wait_for(asyncio.gather(*crowd), 60)
        assert all(counts), dict(
            zip([kind.__name__ for kind in kinds for _ in range(5)], counts, strict=True)
        )
        reply = await client.ask(Code.POLL, poll_body(count=10_000))
        assert [record.payload for record in polled(reply.body)] == [b"%d" % number for number in range(300)]
        rows = (await client.ask(Code.GROUP, identifier("s") + identifier("t") + identifier("g"))).body
        members = U32.unpack_from(rows, 8)[0]
        for _ in range(1_000):
            if not members:
                break
            await asyncio.sleep(0.05)
            rows = (await client.ask(Code.GROUP, identifier("s") + identifier("t") + identifier("g"))).body
            members = U32.unpack_from(rows, 8)[0]
        assert not members, "who vanished is still a member"
        client.close()
        assert await stack.stop() == (0, "")
