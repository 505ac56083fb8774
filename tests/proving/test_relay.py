"""The relay kills at the chosen write, on the chosen side of it, once."""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from desk.proving import relay as relays
from desk.proving.frames import HEADER, Frames, Write
from desk.proving.relay import AFTER, ANY, BEFORE, Point, Relay
from tests.proving.test_frames import acknowledgement, name, request

SEND = request(160, struct.pack("<I", 9) + name("s") + name("desk.events"))
READ = request(2, b"", 100)
JOIN = request(148, name("s") + name("agent.sessions") + name("billing"))
LEAVE = request(149, name("s") + name("agent.sessions") + name("billing"))
WRITE = Write("send", "desk.events")

# An agent that sends the frames it is told, one after the other, waiting for each reply.
AGENT = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for frame in sys.argv[2:]:
    link.sendall(bytes.fromhex(frame))
    got = b""
    while len(got) < 256:
        got += link.recv(256) or sys.exit("cut off")
print("done")
"""


async def agent(relay: Relay, *frames: bytes) -> asyncio.subprocess.Process:
    sent = (frame.hex() for frame in frames)
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", AGENT, str(relay.port), *sent, stdout=asyncio.subprocess.PIPE
    )


class Server:
    """A stack that keeps what it got and answers everything."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.news = asyncio.Event()

    async def has(self, number: int) -> None:
        """Wait until so many frames have come."""
        while len(self.got) < number:
            self.news.clear()
            await self.news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        while data := await reader.read(65536):
            for frame in frames.feed(data):
                self.got.append(frame)
                self.news.set()
                reply = bytearray(HEADER)
                struct.pack_into("<I", reply, 48, HEADER)
                writer.write(bytes(reply))
        writer.close()


@asynccontextmanager
async def stage(
    points: Sequence[Point], *frames: bytes, **options: Any
) -> AsyncIterator[tuple[Relay, Server, asyncio.subprocess.Process]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    relay = Relay("127.0.0.1", listening.sockets[0].getsockname()[1], points, **options)
    await relay.open()
    process = await agent(relay, *frames)
    try:
        yield relay, server, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await relay.close()
        listening.close()


async def test_without_a_point_everything_goes_by_and_is_taken_down() -> None:
    async with stage((), SEND, READ, SEND) as (relay, server, process):
        assert await process.wait() == 0
        assert server.got == [SEND, READ, SEND]
        assert relay.seen == [(WRITE, 1), (WRITE, 2)] and not relay.hits
        assert relay.codes == {"operation 160", "code 100"}


@pytest.mark.parametrize(("side", "arrived"), [(BEFORE, [SEND]), (AFTER, [SEND, SEND])])
async def test_killed_at_the_second_write(side: str, arrived: list[bytes]) -> None:
    async with stage([Point(WRITE, 2, side)], SEND, SEND, SEND) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        assert await process.wait() == -signal.SIGKILL
        assert relay.hits == [process.pid]
        assert server.got == arrived
        assert await process.stdout.read() == b""


async def test_a_point_that_never_comes_kills_nobody() -> None:
    async with stage([Point(WRITE, 3, BEFORE)], SEND, SEND) as (relay, _, process):
        assert await process.wait() == 0
        assert relay.hits == [] and not relay.fired.is_set()


async def test_where_nobody_can_be_hit_no_hit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desk.proving.relay._BORN", 0.05)
    async with stage([Point(WRITE, 2, BEFORE)]) as (relay, _, _process):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", relay.port
        )  # not a process below this one
        writer.write(SEND)
        await reader.readexactly(HEADER)
        writer.write(SEND)
        assert await reader.read() == b""
        writer.close()
        assert relay.hits == [] and not relay.fired.is_set()


async def test_it_kills_once() -> None:
    async with stage([Point(WRITE, 1, BEFORE)], SEND) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        assert await (await agent(relay, SEND)).wait() == 0
        assert server.got == [SEND] and await process.wait() == -signal.SIGKILL


async def test_it_kills_the_next_one_too_counted_from_the_first_kill() -> None:
    points = [Point(WRITE, 2, BEFORE), Point(ANY, 2, AFTER)]
    async with stage(points, SEND, SEND) as (relay, server, process):
        assert await process.wait() == -signal.SIGKILL
        assert await (await agent(relay, SEND, SEND, SEND)).wait() == -signal.SIGKILL
        assert len(relay.hits) == 2 and len(server.got) == 3


async def test_who_comes_after_a_kill_waits_to_be_admitted() -> None:
    async with stage([Point(WRITE, 1, BEFORE)], SEND, admits=False) as (relay, server, process):
        assert await process.wait() == -signal.SIGKILL
        following = await agent(relay, SEND)
        await asyncio.sleep(0.2)
        assert following.returncode is None and server.got == []
        relay.admit()
        assert await following.wait() == 0 and server.got == [SEND]


async def test_a_stopped_process_is_cut_off_and_lives() -> None:
    async with stage([Point(WRITE, 1, AFTER)], SEND, SEND, hit=signal.SIGSTOP) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        assert process.returncode is None and server.got == [SEND]
        os.kill(process.pid, signal.SIGCONT)
        relay.resume()
        assert await process.wait() != 0 and server.got == [SEND]


@pytest.mark.parametrize(("side", "arrived"), [(BEFORE, [JOIN, LEAVE]), (AFTER, [JOIN, SEND, LEAVE])])
async def test_a_stopped_process_whose_connection_is_kept_loses_its_groups_and_goes_on_where_it_was(
    side: str, arrived: list[bytes]
) -> None:
    point = Point(WRITE, 1, side, kept=True)
    async with stage([point], JOIN, SEND, READ, hit=signal.SIGSTOP) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        await server.has(len(arrived))
        assert server.got == arrived and process.returncode is None
        os.kill(process.pid, signal.SIGCONT)
        relay.resume()
        assert await process.wait() == 0 and await process.stdout.read() == b"done\n"
        assert server.got == [*arrived, *([SEND] if side == BEFORE else []), READ]


async def test_what_was_held_back_arrives_even_when_its_process_has_ended() -> None:
    point = Point(WRITE, 1, BEFORE, kept=True)
    async with stage([point], SEND, hit=signal.SIGSTOP) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        process.kill()
        await process.wait()
        relay.resume()
        await server.has(1)
        assert server.got == [SEND]


async def test_a_connection_to_somewhere_else_is_nobodys() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        there = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", there)
        own = writer.get_extra_info("sockname")[1]
        assert relays._has(os.getpid(), own, there) and not relays._has(os.getpid(), own, there + 1)
        writer.close()


async def test_a_hit_knows_every_occurrence_its_frame_was() -> None:
    frames = [acknowledgement(0), acknowledgement(2), acknowledgement(2)]
    points = [Point(Write("acknowledge", "agent.sessions"), 3, BEFORE), Point(ANY, 1, AFTER)]
    async with stage(points, *frames) as (relay, _, process):
        await process.wait()
        await (await agent(relay, SEND)).wait()
        assert relay.frames == ["before acknowledge agent.sessions #2 to #3", "after send desk.events #1"]


def acknowledged(relay: Relay, *numbers: tuple[int, int]) -> list[int]:
    """The occurrences that acknowledgements up to these (partition, offset) are."""
    for partition, offset in numbers:
        relay._side(acknowledgement(offset, partition))
    return [occurrence for _, occurrence in relay.seen]


def test_an_acknowledgement_is_every_record_it_newly_covers_over_all_partitions() -> None:
    relay = Relay("127.0.0.1", 1)
    assert acknowledged(relay, (0, 1), (3, 0), (0, 1), (0, 3)) == [1, 2, 3, 4, 5]
