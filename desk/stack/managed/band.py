"""The managed band: from a command's bytes to its reply's bytes, over the surfaces that are served.

    mutation      frame off, known operation? -> its recorded reply; else handler, position, outcome, reply
    barrier read  frame off when there is one, positions checked, handler, reply in the frame asked for
    plain read    handler, bare reply; may answer later
    anything else CommandError `unsupported`

The engine opens the transaction for MUTATIONS before it calls `handle`, so an outcome is recorded with what
it changed or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from desk.stack.broker.log import Log
from desk.stack.engine import Caller
from desk.stack.managed import batch, hello, outcomes
from desk.stack.managed.outcomes import Outcomes
from desk.stack.managed.served import SURFACES
from desk.stack.managed.surface import Bare, CommandError, Context, Surface, SurfaceError
from desk.stack.store import Store
from desk.stack.wire import agdx, cbor
from desk.stack.wire.iggy import Record
from desk.stack.wire.shape import Shape, ShapeError, check

THE_STACK = Caller(0, 0, "")  # who folds: nobody asked

_NO_SHAPE: Shape = {}


class Route(NamedTuple):
    """How one command code is answered."""

    handler: Callable[[Any, Context], Any]
    shape: Shape
    position: str  # the surface name of its frontier, or ""
    checks_first: bool  # refuses before it writes
    encode: Callable[[Any], bytes]


Answer = Callable[[bytes, Caller], bytes | Awaitable[bytes]]


class Band:
    """All surfaces behind one door; what the engine calls."""

    SCHEMAS: ClassVar[Sequence[str]] = (outcomes.SCHEMA, *(s.schema for s in SURFACES if s.schema))
    MUTATIONS: ClassVar[frozenset[int]] = agdx.MUTATION_CODES.union(*(s.writes for s in SURFACES))
    LATER: ClassVar[frozenset[int]] = frozenset().union(*(s.later for s in SURFACES))

    def __init__(self, store: Store, log: Log, clock: Callable[[], int] | None = None) -> None:
        """`clock` gives the time in epoch microseconds."""
        self._store = store
        self._log = log
        self._now_us = clock or _now_us
        self._opened_us = self._now_us()
        self.surfaces: dict[str, Surface] = {kind.name: kind(store, log) for kind in SURFACES}
        self._folds = [s for s in self.surfaces.values() if type(s).appended is not Surface.appended]
        self._outcomes = Outcomes(store)
        self._mutations = self._routes("mutations")
        self._reads = self._routes("barrier_reads")
        self._plain = self._routes("plain")
        self._answers = self._wired()
        self._hello = b""
        self.reload()

    def _wired(self) -> dict[int, Answer]:
        """What answers each command code that is served."""
        answers: dict[int, Answer] = {agdx.HELLO: self._greet, agdx.BATCH: self._batch}
        for routes, answer in (
            (self._mutations, self._mutate),
            (self._reads, self._read),
            (self._plain, self._answer_plain),
            (self._routes("raw"), self._answer_raw),
        ):
            answers.update((code, partial(answer, route)) for code, route in routes.items())
        return answers

    def reload(self) -> None:
        """Forget every cache and read the tables again: at the start, and after a transaction failed."""
        self._outcomes.reload()
        for surface in self.surfaces.values():
            surface.reload()

    def handle(self, code: int, body: bytes, caller: Caller) -> bytes | Awaitable[bytes]:
        """Answer one managed command."""
        try:
            answer = self._answers.get(code)
            if answer is None:
                raise unsupported(code)
            return answer(body, caller)
        except CommandError as error:
            return agdx.refusal(error.code, error.message)
        except (cbor.DecodeError, ShapeError) as error:
            return agdx.refusal("invalid_argument", str(error))

    def wants(self, stream: str, topic: str, frames: bytes | None = None) -> bool:
        """Does any fold want records of this topic? `frames`, when given, are the bytes that were appended."""
        return any(
            surface.wants(stream, topic) and (frames is None or surface.marker in frames)
            for surface in self._folds
        )

    def appended(self, stream: str, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Run the folds of one append, inside its transaction."""
        context = self._context(THE_STACK)
        for surface in self._folds:
            if surface.wants(stream, topic):
                surface.appended(stream, topic, partition, records, context)

    def disconnected(self, client_id: int) -> None:
        """Forget what belonged to a connection."""
        for surface in self.surfaces.values():
            surface.disconnected(client_id)

    def close(self) -> None:
        """Let go of the file, before the store closes it."""
        for surface in self.surfaces.values():
            surface.close()

    # ---- mutations

    def _mutate(self, route: Route, body: bytes, caller: Caller) -> bytes:
        frame = agdx.mutation_frame(body)
        reply = self._outcomes.recall(frame.operation_id)
        if reply is None:
            now_us = self._now_us()
            reply = self._apply(route, frame.payload, caller, frame.operation_id, now_us)
            self._outcomes.remember(frame.operation_id, now_us, reply)
        return self._framed(reply)

    def _apply(self, route: Route, payload: bytes, caller: Caller, operation_id: int, now_us: int) -> bytes:
        """Apply one mutation; the bare surface reply. A refusal leaves no trace but its recorded outcome."""
        request = cbor.loads(payload)
        position = self._outcomes.advance(route.position, now_us) if route.position else None
        context = Context(self._store, self._log, now_us, caller, self.surfaces, operation_id, position)
        if route.checks_first:
            return _answer(route, request, context)
        try:
            with self._store.db:  # a savepoint: what a refused handler wrote goes, the outcome stays
                return _reply(route, route.handler(check_request(request, route.shape), context))
        except SurfaceError as error:
            return cbor.dumps({"Err": error.value})

    def _batch(self, body: bytes, caller: Caller) -> bytes:
        frame = agdx.mutation_frame(body)
        reply = self._outcomes.recall(frame.operation_id)
        if reply is None:
            now_us = self._now_us()
            slots, changed = batch.run(self, frame, caller, now_us)
            reply = cbor.dumps({"results": slots})
            if changed:
                self._outcomes.remember(frame.operation_id, now_us, reply)
        return self._framed(reply)

    # ---- what a batch asks of the band

    def apply(self, code: int, payload: bytes, caller: Caller, operation_id: int, now_us: int) -> bytes:
        """Apply one mutation of a batch; the bare surface reply."""
        route = self._mutations.get(code)
        if route is None:
            raise unsupported(code)
        return self._apply(route, payload, caller, operation_id, now_us)

    def recall(self, operation_id: int) -> bytes | None:
        """The recorded reply of an operation, for items of a batch that carry their own identity."""
        return self._outcomes.recall(operation_id)

    def remember(self, operation_id: int, now_us: int, reply: bytes) -> None:
        """Record the reply of such an item."""
        self._outcomes.remember(operation_id, now_us, reply)

    def read_bare(self, code: int, payload: bytes, caller: Caller) -> bytes:
        """One read inside a batch: framed or bare in, always bare out."""
        route = self._reads.get(code) or self._plain.get(code)
        if route is None or code in self.MUTATIONS:
            raise unsupported(code)
        if code in self.LATER:
            raise CommandError("unsupported", "a query cannot ride in a batch")
        if code in self._reads:
            frame = agdx.read_frame(payload)
            request = cbor.loads(frame.read) if isinstance(frame, agdx.ReadFrame) else frame
        else:
            request = cbor.loads(payload)
        try:
            outcome = route.handler(check_request(request, route.shape), self._read_context(route, caller))
        except SurfaceError as error:
            return cbor.dumps({"Err": error.value})
        return _reply(route, outcome)

    # ---- reads

    def _read(self, route: Route, body: bytes, caller: Caller) -> bytes:
        frame = agdx.read_frame(body)
        context = self._read_context(route, caller)
        if not isinstance(frame, agdx.ReadFrame):
            return _answer(route, frame, context)
        if frame.min_position and not (context.position and context.position.covers(frame.min_position)):
            raise CommandError("stale", f"the {route.position} surface is not at the required position")
        return self._framed(_answer(route, cbor.loads(frame.read), context))

    def _answer_plain(self, route: Route, body: bytes, caller: Caller) -> bytes | Awaitable[bytes]:
        context = self._read_context(route, caller)
        try:
            outcome = route.handler(check_request(cbor.loads(body), route.shape), context)
        except SurfaceError as error:
            return cbor.dumps({"Err": error.value})
        return _reply_later(route, outcome) if isinstance(outcome, Awaitable) else _reply(route, outcome)

    def _answer_raw(self, route: Route, body: bytes, caller: Caller) -> bytes:
        return route.handler(body, self._context(caller))

    def _greet(self, _body: bytes, caller: Caller) -> bytes:
        context = self._context(caller)
        for surface in self.surfaces.values():
            surface.greeted(context)
        self._hello = self._hello or cbor.dumps(hello.announce(self.surfaces.values(), self._opened_us))
        return self._hello

    def _framed(self, reply: bytes) -> bytes:
        return agdx.reply_frame(reply, self._outcomes.frontier())

    def _context(self, caller: Caller) -> Context:
        return Context(self._store, self._log, self._now_us(), caller, self.surfaces)

    def _read_context(self, route: Route, caller: Caller) -> Context:
        position = self._outcomes.heads.get(route.position)
        return Context(self._store, self._log, self._now_us(), caller, self.surfaces, 0, position)

    def _routes(self, kind: str) -> dict[int, Route]:
        """Every surface's handlers of one kind, bound and with the shapes of their requests."""
        routes: dict[int, Route] = {}
        for surface in self.surfaces.values():
            handlers: Mapping[int, Callable[..., Any]] = getattr(surface, kind)
            for code, handler in handlers.items():
                shape = surface.shapes.get(code, _NO_SHAPE)
                encode = cbor.dumps_floatless if surface.floatless else cbor.dumps
                routes[code] = Route(
                    handler.__get__(surface), shape, surface.position, surface.checks_first, encode
                )
        return routes


def unsupported(code: int) -> CommandError:
    """The refusal of a command nobody here serves."""
    return CommandError("unsupported", f"command {code} is not served here")


def check_request(request: Any, shape: Shape) -> dict[str, Any]:
    """A decoded request of the right shape and of op version 1."""
    checked = check(request, shape)
    if "v" in shape and checked["v"] != 1:
        raise SurfaceError({"Version": {"expected": 1, "got": checked["v"]}})
    return checked


def _answer(route: Route, request: Any, context: Context) -> bytes:
    try:
        return _reply(route, route.handler(check_request(request, route.shape), context))
    except SurfaceError as error:
        return cbor.dumps({"Err": error.value})


def _reply(route: Route, outcome: Any) -> bytes:
    return route.encode(outcome.value if isinstance(outcome, Bare) else {"Ok": outcome})


async def _reply_later(route: Route, outcome: Awaitable[Any]) -> bytes:
    try:
        return _reply(route, await outcome)
    except SurfaceError as error:
        return cbor.dumps({"Err": error.value})
    except CommandError as error:
        return agdx.refusal(error.code, error.message)


def _now_us() -> int:
    return time.time_ns() // 1000
