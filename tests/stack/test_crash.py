"""SIGKILL of the stack: what was acknowledged is there, work goes on where it stood, clients come back."""

import asyncio
import contextlib
import os
import random

import laser_sdk as ls

from desk.runtime.connect import connect
from desk.stack.wire.codes import Code
from desk.stack.wire.frame import Reply
from desk.stack.wire.scalars import U32, U64, identifier, name
from tests.stack.brokers import Client, engine, offset_body, poll_body, polled, send_body
from tests.stack.raw import RawClient
from tests.stack.running import StackProcess, stack_process

KILLS = int(os.environ.get("STACK_KILLS", "5"))
SECONDS = 60


class Load:
    """How much has been written since the stack was started; `enough` after `goal` messages."""

    def __init__(self, goal: int) -> None:
        self.left = goal
        self.enough = asyncio.Event()

    def wrote(self) -> None:
        self.left -= 1
        if not self.left:
            self.enough.set()


class Writer:
    """Publishes and commits without a pause; remembers what it was told."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.acknowledged: dict[int, bytes] = {}  # offset -> payload
        self.unsure: set[bytes] = set()  # sent, never answered
        self.committed = -1
        self.sent = 0

    async def write(self, connection: str, load: Load) -> None:
        """Until the stack is gone."""
        with (
            contextlib.suppress(asyncio.IncompleteReadError, ConnectionError),
            contextlib.closing(await RawClient.connect(connection)) as client,
        ):
            while True:
                await self._one(client, load)

    async def _one(self, client: RawClient, load: Load) -> None:
        payload = f"{self.partition}:{self.sent}".encode()
        self.sent += 1
        self.unsure.add(payload)
        load.wrote()
        reply = await client.ask(Code.SEND, send_body(payload, partition=self.partition))
        assert isinstance(reply, Reply) and not reply.status
        self.unsure.discard(payload)
        offset = U64.unpack_from(reply.body, 16)[0]
        self.acknowledged[offset] = payload
        place = offset_body(consumer="writer", partition=self.partition)
        reply = await client.ask(Code.STORE_OFFSET, place + U64.pack(offset) + b"\0")
        assert isinstance(reply, Reply) and not reply.status
        self.committed = offset

    async def check(self, client: RawClient) -> None:
        """Everything acknowledged lies where it was said to, nothing twice, no gap, the commit not behind."""
        reply = await client.ask(Code.POLL, poll_body(partition=self.partition, count=10_000_000))
        found = {record.offset: record.payload for record in polled(reply.body)}
        assert list(found) == list(range(len(found)))
        assert self.acknowledged.items() <= found.items()
        extra = set(found) - set(self.acknowledged)
        assert {found[offset] for offset in extra} <= self.unsure
        assert len(set(found.values())) == len(found)
        reply = await client.ask(Code.OFFSET, offset_body(consumer="writer", partition=self.partition))
        assert self.committed <= (U64.unpack_from(reply.body, 12)[0] if reply.body else -1)


async def test_nothing_acknowledged_is_lost_however_often_the_stack_dies(tmp_path):
    chance = random.Random(41)
    writers = [Writer(partition) for partition in range(3)]
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        await client.ask(Code.CREATE_STREAM, name("s"))
        await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(3) + name("t"))
        client.close()
        for _ in range(KILLS):
            load = Load(chance.randint(10, 400))
            running = [asyncio.create_task(writer.write(stack.connection, load)) for writer in writers]
            await asyncio.wait_for(load.enough.wait(), SECONDS)
            await stack.kill()
            await asyncio.wait_for(asyncio.gather(*running), SECONDS)
            await stack.start()
            client = await RawClient.connect(stack.connection)
            for writer in writers:
                await writer.check(client)
            client.close()
        assert await stack.stop() == (0, "")


async def test_a_batch_is_there_whole_or_not_at_all(tmp_path):
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        await client.ask(Code.CREATE_STREAM, name("s"))
        await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
        batch = send_body(*(bytes((n,)) * 2_000 for n in range(200)))
        for _ in range(5):
            client.writer.write(client.request(Code.SEND, batch))
        await client.read()
        await stack.kill()
        client.close()
    with engine(tmp_path) as made:
        found = Client(made).poll(count=10_000)
        assert len(found) >= 200
        assert len(found) % 200 == 0


async def test_clients_carry_on_by_themselves(tmp_path):
    """A group consumer and a publisher of the real SDK, connected before the kill, work after it."""
    stack = StackProcess(tmp_path)
    try:
        await stack.start()
        laser = await connect(stack.connection, "s")
        await laser.stream("s").ensure()
        topic = laser.topic("jobs")
        await topic.ensure(partitions=2)
        reading = await connect(stack.connection, "s")
        reader = (
            reading.topic("jobs")
            .consumer_group("workers")
            .consumer(auto_commit="disabled", poll_interval_ms=5, polling_retry_interval_ms=50)
        )
        handled = []
        for n in range(6):
            if n == 3:
                await stack.kill()
                await stack.start()
            await topic.publish().payload(str(n).encode()).send()
            while str(n) not in handled:
                message = await reader.next_within(SECONDS * 1_000)
                await reader.commit(message)
                handled.append(message.payload.decode())
        assert handled == [str(n) for n in range(6)]
        await laser.close()
        await reading.close()
    finally:
        await stack.end()


async def acknowledged(laser: ls.Laser, agent: str) -> None:
    """Wait until the agent has acknowledged all there is. The SDK's agent ends when its acknowledgement meets a stack
    that no longer knows it for a member (5009); a desk's process ends with it, and the next one does the work."""
    group = laser.topic("agent.sessions").consumer_group(agent)
    reader = group.consumer(auto_commit="disabled", auto_join_group=False, create_group=False)
    async with asyncio.timeout(SECONDS):
        while not (at := await reader.stored_offset(0)) or at.stored_offset < at.current_offset:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_an_agent_carries_on_by_itself(tmp_path):
    stack = StackProcess(tmp_path)
    try:
        await stack.start()
        laser = await connect(stack.connection, "s")
        await laser.bootstrap(1, retention=ls.TopicRetention.expire_after(86_400_000))
        replies: asyncio.Queue[bytes] = asyncio.Queue()

        async def handle(_ctx, message):
            replies.put_nowait(bytes(message.payload))

        agent = laser.spawn_agent("worker", "agent.sessions", handle)
        await agent.ready()
        await laser.send_agent("agent.sessions", b"before", ls.Provenance())
        assert await asyncio.wait_for(replies.get(), SECONDS) == b"before"
        await acknowledged(laser, "worker")
        await stack.kill()
        await stack.start()
        await laser.send_agent("agent.sessions", b"after", ls.Provenance())
        async with asyncio.timeout(SECONDS):
            while await replies.get() != b"after":
                pass
        dead = await laser.topic("agent.dlq").replay().poll()
        assert dead == []
        await agent.shutdown()
        await laser.close()
    finally:
        await stack.end()
