"""A client that speaks the frames itself: for what the SDK would never send, and to ask without its caches."""

import asyncio
import secrets

from desk.stack.wire import frame
from desk.stack.wire.codes import PROTOCOL_VERSION, REPLICATED, Code, Eviction, Operation
from desk.stack.wire.scalars import U32, name

OPERATIONS = {code: operation for operation, code in REPLICATED.items()}


def login_body(user: str, password: str, version: int = PROTOCOL_VERSION) -> bytes:
    return U32.pack(version) + name("raw") + name("0") + name(user) + name(password) + U32.pack(0)


class RawClient:
    """One connection; one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.client = secrets.token_bytes(16)
        self.session = 0

    @classmethod
    async def connect(cls, connection: str, *, login: bool = True) -> "RawClient":
        """`connection` as the stack prints it."""
        credentials, _, address = connection.rpartition("@")
        host, _, port = address.partition(":")
        made = cls(*await asyncio.open_connection(host, int(port)))
        if login:
            user, _, password = credentials.partition(":")
            reply = await made.register(login_body(user, password))
            assert isinstance(reply, frame.Reply)
            made.session = int.from_bytes(reply.body[4:12], "little")
        return made

    async def register(self, body: bytes) -> frame.Reply | Eviction:
        return await self.exchange(frame.encode_request(Operation.REGISTER, body=body, client=self.client))

    async def ask(self, code: int, body: bytes = b"") -> frame.Reply | Eviction:
        return await self.exchange(self.request(code, body))

    def request(self, code: int, body: bytes = b"") -> bytes:
        operation = OPERATIONS.get(code, Operation.NON_REPLICATED)
        return frame.encode_request(operation, code, body, client=self.client, session=self.session)

    async def exchange(self, raw: bytes) -> frame.Reply | Eviction:
        """Send anything, read one frame back; IncompleteReadError or ConnectionError when closed on."""
        self.writer.write(raw)
        await self.writer.drain()
        return await self.read()

    async def read(self) -> frame.Reply | Eviction:
        header = await self.reader.readexactly(frame.HEADER)
        size = U32.unpack_from(header, 48)[0]
        return frame.decode_reply(header + await self.reader.readexactly(size - frame.HEADER))

    async def ping(self) -> bool:
        reply = await self.ask(Code.PING)
        return isinstance(reply, frame.Reply) and not reply.status

    def close(self) -> None:
        self.writer.close()
