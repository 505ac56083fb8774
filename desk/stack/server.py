"""Connections and sessions: bytes in, bytes out. One request of a connection at a time, replies in order."""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Coroutine

from desk.stack.broker.access import Access
from desk.stack.broker.state import Session
from desk.stack.broker.system import ROOT
from desk.stack.engine import Engine
from desk.stack.store import StoreError
from desk.stack.untaken import Untaken
from desk.stack.wire.codes import PROTOCOL_VERSION, Code, Eviction, Operation, Refused, Status
from desk.stack.wire.frame import (
    LARGEST,
    BadFrame,
    Request,
    Splitter,
    decode_request,
    encode_eviction,
    encode_reply,
)
from desk.stack.wire.messages import decode_login, encode_login
from desk.stack.wire.scalars import Reader

log = logging.getLogger(__name__)

STALE_SECONDS = 36.0  # a group member silent for so long is evicted (clients ping every 5 s)
SWEEP_SECONDS = 1.0
RECEIVE_BYTES = 256 * 1024
AHEAD_BYTES = 64 * 1024  # of a client's next requests, kept while an answer is worked on; then it has to wait
WRONG_LOGIN_SECONDS = 0.5  # guessing is slow


class Connection(asyncio.BufferedProtocol):
    """One client. Clients are lockstep; one that is not is read no faster than it is answered.

    All connections receive into one buffer: what came is taken out of it before the next one receives.
    """

    _received = memoryview(bytearray(RECEIVE_BYTES))

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._engine = server.engine
        self._splitter = Splitter()
        self._busy = False  # an answer is being worked on
        self._answer: asyncio.Task[None] | None = None  # by whom, when it is a query
        self._choked = False  # the client does not read its replies
        self._closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = transport.get_extra_info("peername")[:2]
        self.session = self._server.admit(self, f"{host}:{port}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        if self._answer is not None:
            self._answer.cancel()  # nobody waits for this query any more
        self._server.connections.pop(self.session.number, None)
        self._server.untaken.gone(self)
        self._engine.disconnected(self.session)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        self._splitter.feed(self._received[:nbytes])
        if self._busy:
            self._restrain()
        else:
            self._advance()

    def pause_writing(self) -> None:
        self._choked = True
        self._transport.pause_reading()
        self._server.close_slowest(self)

    def resume_writing(self) -> None:
        self._server.untaken.gone(self)
        self._choked = False
        self._resume()

    @property
    def unread(self) -> int:
        """Bytes of its reply that the client has not taken."""
        return self._transport.get_write_buffer_size()

    def abort(self) -> None:
        self._transport.abort()

    def give_up(self) -> None:
        """End a connection whose client does not read."""
        log.warning(
            "connection %s closed: its client does not read, and too many replies wait unread in all",
            self.session.address,
        )
        self.abort()

    def evict(self, reason: Eviction) -> None:
        """End the session and the connection."""
        self._engine.leave(self.session)
        self._send(encode_eviction(self.session.client, reason))
        self._transport.close()

    def _advance(self) -> None:
        try:
            while not (self._busy or self._choked or self._closed):
                frame = self._splitter.next()
                if frame is None:
                    return
                self._serve(decode_request(frame))
        except BadFrame as problem:
            log.info("connection %s closed: %s", self.session.address, problem)
            self.abort()

    def _resume(self) -> None:
        if not (self._busy or self._choked or self._closed):
            self._transport.resume_reading()
            self._advance()

    def _hold(self) -> None:
        """The answer comes later. Reading goes on: only who reads learns that the client is gone."""
        self._busy = True
        self._restrain()

    def _restrain(self) -> None:
        if self._splitter.waiting > AHEAD_BYTES:
            self._transport.pause_reading()

    def _send(self, frame: bytes) -> None:
        if not self._closed:
            self._transport.write(frame)

    def _finish(self, frame: bytes) -> None:
        """A held answer is there."""
        self._send(frame)
        self._busy = False
        self._resume()

    def _serve(self, request: Request) -> None:
        session, engine = self.session, self._engine
        session.seen = time.monotonic()
        if request.operation == Operation.REGISTER:
            self._register(request)
            return
        if request.code == Code.PING:
            self._send(encode_reply(request, engine.op, 0))
            return
        replicated = request.operation != Operation.NON_REPLICATED
        if not session.epoch or (replicated and request.session != session.epoch):
            self._send(encode_eviction(request.client, Eviction.NO_SESSION))
            return
        if replicated:
            engine.op += 1
        if request.operation == Operation.LOGOUT:
            engine.leave(session)
            self._send(encode_reply(request, engine.op, 0))
            return
        try:
            answer = engine.handle(session, request.code, request.body)
        except Refused as refused:
            self._send(encode_reply(request, engine.op, refused.status))
        except Exception as error:
            self._send(encode_reply(request, engine.op, _failure(request, error)))
        else:
            if isinstance(answer, Awaitable):
                self._hold()
                self._answer = self._server.start(self._later(request, answer))
            else:
                self._send(encode_reply(request, engine.op, 0, answer))

    async def _later(self, request: Request, answer: Awaitable[bytes]) -> None:
        try:
            frame = encode_reply(request, self._engine.op, 0, await answer)
        except Refused as refused:
            frame = encode_reply(request, self._engine.op, refused.status)
        except Exception as error:
            frame = encode_reply(request, self._engine.op, _failure(request, error))
        self._answer = None
        self._finish(frame)

    def _register(self, request: Request) -> None:
        engine, session = self._engine, self.session
        try:
            version = Reader(request.body).u32()
            if version < PROTOCOL_VERSION or version >> 10 > PROTOCOL_VERSION >> 10:
                refusal = encode_eviction(
                    request.client, Eviction.INCOMPATIBLE, PROTOCOL_VERSION, PROTOCOL_VERSION
                )
                self._send(refusal)
                return
            login = decode_login(request.body)
        except Refused:
            self._send(encode_eviction(request.client, Eviction.MALFORMED_LOGIN))
            return
        if not self._server.access.allows(login):
            reason = Eviction.BAD_CREDENTIALS if login.token is None else Eviction.BAD_TOKEN
            self._hold()
            asyncio.get_running_loop().call_later(
                WRONG_LOGIN_SECONDS, self._finish, encode_eviction(request.client, reason)
            )
            return
        engine.leave(session)
        engine.op += 1
        session.client, session.epoch, session.user = request.client, engine.op, ROOT
        self._splitter.largest = LARGEST
        self._send(encode_reply(request, engine.op, 0, encode_login(ROOT, session.epoch)))


def _failure(request: Request, error: Exception) -> Status:
    """What Iggy answers when the server is at fault; the log has the reason."""
    if isinstance(error, StoreError):
        log.error("%s", error)
    else:
        log.error("command %d failed", request.code, exc_info=error)
    return Status.ERROR


class Server:
    """All connections of one engine, and the clock that ticks for it."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self.engine = engine
        self.access = access
        self.connections: dict[int, Connection] = {}
        self.untaken: Untaken[Connection] = Untaken()
        self._last_number = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then close every connection."""
        loop = asyncio.get_running_loop()
        serving = await loop.create_server(lambda: Connection(self), sock=listener, backlog=512)
        self.start(self._tick())
        await stop.wait()
        serving.close()
        for connection in list(self.connections.values()):
            connection.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def admit(self, connection: Connection, address: str) -> Session:
        """A new connection's session; numbers are never used again."""
        self._last_number += 1
        session = Session(self._last_number, address, seen=time.monotonic())
        self.connections[session.number] = connection
        self.engine.broker.sessions[session.number] = session
        return session

    def close_slowest(self, paused: Connection) -> None:
        """Another reply waits for its client: when that is too much in all, those that would wait longest end."""
        for connection in self.untaken.paused(paused, time.monotonic()):
            connection.give_up()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run beside the connections, at the latest until the server stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def evict_stale(self, now: float) -> None:
        """Group members that have gone silent lose their partitions to the others."""
        for connection in list(self.connections.values()):
            session = connection.session
            silent = session.epoch and now - session.seen > STALE_SECONDS
            if silent and self.engine.broker.groups.memberships(session.client):
                connection.evict(Eviction.STALE)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                self.evict_stale(time.monotonic())
                self.engine.sweep(time.monotonic())
            except StoreError as error:
                log.error("%s", error)
            except Exception:
                log.exception("the sweep failed")
