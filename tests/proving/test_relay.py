"""The relay kills at the chosen write, on the chosen side of it, once."""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from desk.proving.frames import HEADER, Frames, Write
from desk.proving.relay import AFTER, BEFORE, Point, Relay
from tests.proving.test_frames import name, request

SEND = request(160, struct.pack("<I", 9) + name("s") + name("desk.events"))
READ = request(2, b"", 100)
WRITE = Write("send", "desk.events")

# An agent that sends the frames it is told, one after the other, waiting for each reply.
AGENT = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for frame in sys.argv[2:]:
    link.sendall(bytes.fromhex(frame))
    got = b""
    while len(got) < 256:
        got += link.recv(256)
print("done")
"""


class Server:
    """A stack that keeps what it got and answers everything."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        while data := await reader.read(65536):
            for frame in frames.feed(data):
                self.got.append(frame)
                reply = bytearray(HEADER)
                struct.pack_into("<I", reply, 48, HEADER)
                writer.write(bytes(reply))
        writer.close()


@asynccontextmanager
async def stage(
    point: Point | None, *frames: bytes
) -> AsyncIterator[tuple[Relay, Server, asyncio.subprocess.Process]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    born: asyncio.Future[asyncio.subprocess.Process] = asyncio.get_running_loop().create_future()

    async def kill() -> int:
        process = await born
        os.kill(process.pid, signal.SIGKILL)
        return process.pid

    relay = Relay("127.0.0.1", listening.sockets[0].getsockname()[1], point, kill)
    port = await relay.open()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        AGENT,
        str(port),
        *(frame.hex() for frame in frames),
        stdout=asyncio.subprocess.PIPE,
    )
    born.set_result(process)
    try:
        yield relay, server, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await relay.close()
        listening.close()


async def test_without_a_point_everything_goes_by_and_is_taken_down() -> None:
    async with stage(None, SEND, READ, SEND) as (relay, server, process):
        assert await process.wait() == 0
        assert server.got == [SEND, READ, SEND]
        assert relay.seen == [(WRITE, 1), (WRITE, 2)] and not relay.fired.is_set()


@pytest.mark.parametrize(("side", "arrived"), [(BEFORE, [SEND]), (AFTER, [SEND, SEND])])
async def test_killed_at_the_second_write(side: str, arrived: list[bytes]) -> None:
    async with stage(Point(WRITE, 2, side), SEND, SEND, SEND) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        assert await process.wait() == -signal.SIGKILL
        assert relay.killed == process.pid
        assert server.got == arrived
        assert await process.stdout.read() == b""


async def test_a_point_that_never_comes_kills_nobody() -> None:
    async with stage(Point(WRITE, 3, BEFORE), SEND, SEND) as (relay, _, process):
        assert await process.wait() == 0
        assert relay.killed == 0


async def test_it_kills_once() -> None:
    async with stage(Point(WRITE, 1, BEFORE), SEND) as (relay, server, process):
        await asyncio.wait_for(relay.fired.wait(), 20)
        again = await asyncio.create_subprocess_exec(
            sys.executable, "-c", AGENT, str(relay.port), SEND.hex(), stdout=asyncio.subprocess.DEVNULL
        )
        assert await again.wait() == 0
        assert server.got == [SEND] and await process.wait() == -signal.SIGKILL
