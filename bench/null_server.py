"""python -m bench.null_server: answers what a publisher and a reader ask, out of memory, and keeps nothing.

The reference of the publish and replay rows: the same client, the same framing (desk.stack.wire), the same kind
of asyncio protocol, but no data behind it. It counts messages per topic and serves its newest large batch over and
over, so that a reader gets as many messages as were published.
"""

import asyncio
import json
import socket
import struct
from dataclasses import dataclass

from desk.stack.wire.codes import Code, Operation, Status
from desk.stack.wire.frame import LARGEST, Request, Splitter, decode_request, encode_reply
from desk.stack.wire.iggy import BATCH_HEADER, encode_batch_header
from desk.stack.wire.messages import (
    PartitionRecord,
    StreamRecord,
    TopicRecord,
    encode_cluster,
    encode_login,
    encode_polled,
    encode_sent,
    encode_stream,
    encode_topic,
)
from desk.stack.wire.scalars import U32, Reader

HOST = "127.0.0.1"
RECEIVE_BYTES = 256 * 1024  # as the stack does
_POLL_TAIL = struct.Struct("<QIB")  # offset, count, auto commit: the end of a poll's body


@dataclass(slots=True)
class Shelf:
    """What is known of one topic: how many messages it was sent, and the frames of one full batch."""

    upcoming: int = 0
    count: int = 0
    frames: bytes = b""


class Null:
    """Answers requests; a topic exists as soon as somebody asks for it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.shelves: dict[bytes, Shelf] = {}

    def answer(self, request: Request) -> bytes:
        """The reply frame."""
        if request.operation == Operation.REGISTER:
            return encode_reply(request, 1, 0, encode_login(0, 1))
        body = request.body
        match request.code:
            case Code.PING:
                return encode_reply(request, 1, 0)
            case Code.SEND:
                return encode_reply(request, 1, 0, self.send(body))
            case Code.POLL:
                return encode_reply(request, 1, 0, self.poll(body))
            case Code.CLUSTER:
                return encode_reply(request, 1, 0, encode_cluster(HOST, self.port))
            case Code.STREAM | Code.CREATE_STREAM:
                return encode_reply(request, 1, 0, encode_stream(StreamRecord(0, 1, 0, 0, 0, "null", b"")))
            case Code.TOPIC | Code.CREATE_TOPIC:
                forever = 2**64 - 1
                topic = TopicRecord(0, 1, 1, forever, 1, forever, 0, 0, "null", b"")
                upcoming = self.shelves.get(body, Shelf()).upcoming
                partition = PartitionRecord(0, 1, max(upcoming - 1, 0), 0, upcoming)
                return encode_reply(request, 1, 0, encode_topic(topic, [partition]))
        return encode_reply(request, 1, Status.INVALID_COMMAND)

    def send(self, body: bytes) -> bytes:
        size = U32.unpack_from(body)[0]
        reader = Reader(body, 4)
        reader.identifier()
        reader.identifier()
        shelf = self.shelves.setdefault(body[4 : reader.at], Shelf())
        start = 4 + size
        count = U32.unpack_from(body, start + 48)[0]
        if count >= shelf.count:
            shelf.count, shelf.frames = count, body[start + BATCH_HEADER :]
        shelf.upcoming += count
        return encode_sent(0, 0, 0, shelf.upcoming - count)

    def poll(self, body: bytes) -> list[bytes]:
        reader = Reader(body, 1)
        reader.identifier()
        start = reader.at
        reader.identifier()
        reader.identifier()
        shelf = self.shelves.get(body[start : reader.at], Shelf())
        offset, wanted, _ = _POLL_TAIL.unpack_from(body, len(body) - _POLL_TAIL.size)
        count = shelf.count
        if offset >= shelf.upcoming or wanted < count:
            return [encode_polled(0, max(shelf.upcoming - 1, 0), 0)]
        head = encode_batch_header(0, offset, 1, 1, len(shelf.frames), count)
        return [encode_polled(0, shelf.upcoming - 1, count), head, shelf.frames]


class Connection(asyncio.BufferedProtocol):
    """One client. All receive into one buffer, as the stack's do."""

    _received = memoryview(bytearray(RECEIVE_BYTES))

    def __init__(self, null: Null) -> None:
        self._null = null
        self._splitter = Splitter(LARGEST)

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        self._splitter.feed(self._received[:nbytes])
        while (frame := self._splitter.next()) is not None:
            self._transport.write(self._null.answer(decode_request(frame)))


async def serve() -> None:
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    null = Null(port)
    await asyncio.get_running_loop().create_server(lambda: Connection(null), sock=listener)
    print(json.dumps({"connection_string": f"iggy:iggy@{HOST}:{port}"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
