"""python -m bench.canned_server FILE: plays recorded replies, so that only the wheel's own work is timed.

`record` stands between a client and a real server for a while and notes every reply by command code. Played
back, the n-th request of a code gets the n-th reply, round and round, with the ids of the new request in it.
"""

import asyncio
import json
import pickle
import socket
import sys
from collections import defaultdict
from pathlib import Path

from desk.stack.wire import agdx
from desk.stack.wire.codes import Code
from desk.stack.wire.frame import (
    HEADER,
    LARGEST,
    Request,
    Splitter,
    decode_request,
    encode_reply,
)
from desk.stack.wire.messages import encode_cluster

HOST = "127.0.0.1"
_EXECUTION = b"\x6cexecution_id\x50"  # the CBOR key and the head of its 16 bytes

Replies = dict[int, list[tuple[bytes, bytes]]]
"""Command code -> (execution id of the request or nothing, body of the reply with its result section) in order."""


def execution(body: bytes) -> bytes:
    """The execution id that a query's body names, or nothing."""
    at = body.find(_EXECUTION)
    return b"" if at < 0 else body[at + len(_EXECUTION) : at + len(_EXECUTION) + 16]


class Recorder:
    """A relay to `address`. `async with` gives the port to connect to; `replies` fill as requests pass."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.replies: Replies = defaultdict(list)

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._relay, HOST, 0)
        return self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def save(self, path: Path) -> None:
        path.write_bytes(pickle.dumps(dict(self.replies)))

    async def _relay(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        requests, answers = Splitter(LARGEST), Splitter(LARGEST)
        try:
            while True:
                frame = await _frame(requests, client)
                writer.write(frame)
                answer = await _frame(answers, reader)
                request = decode_request(frame)
                self.replies[_key(request)].append((execution(request.body), bytes(answer[HEADER:])))
                back.write(answer)
        except ConnectionError:
            writer.close()
            back.close()


async def _frame(splitter: Splitter, source: asyncio.StreamReader) -> bytes | memoryview:
    while (frame := splitter.next()) is None:
        data = await source.read(1 << 18)
        if not data:
            raise ConnectionResetError
        splitter.feed(data)
    return frame


def _key(request: Request) -> int:
    return request.code or -request.operation


class Player(asyncio.Protocol):
    """One client of the recording."""

    def __init__(self, replies: Replies, port: int) -> None:
        self._replies = replies
        self._port = port
        self._turns: dict[int, int] = defaultdict(int)
        self._splitter = Splitter(LARGEST)

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)
        while (frame := self._splitter.next()) is not None:
            self._transport.write(self._answer(decode_request(frame)))

    def _answer(self, request: Request) -> bytes:
        if request.code in (Code.PING, Code.CLUSTER):
            body = encode_cluster(HOST, self._port) if request.code == Code.CLUSTER else b""
            return encode_reply(request, 1, 0, body)
        key = _key(request)
        recorded = self._replies[key]
        before, body = recorded[self._turns[key] % len(recorded)]
        self._turns[key] += 1
        if request.code in (agdx.QUERY, agdx.QUERY_PAGE):
            body = body.replace(before, execution(request.body))
        if body[:4] == bytes(4) and request.operation != 2:
            body = body[4:]  # encode_reply writes the result section
        return encode_reply(request, 1, 0, body)


async def serve(replies: Replies) -> None:
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    await asyncio.get_running_loop().create_server(lambda: Player(replies, port), sock=listener)
    print(json.dumps({"connection_string": f"iggy:iggy@{HOST}:{port}"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(pickle.loads(Path(sys.argv[1]).read_bytes())))
