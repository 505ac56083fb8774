"""The registry surface: control commands and browsing. It owns the views and hands records to the projector.

A control command is a record of `_agdx/control.commands`: one that came as a command is appended there and
applied; one that somebody appended there is applied just the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from desk.stack.broker.log import Log
from desk.stack.folds import sources
from desk.stack.folds.feed import Feed
from desk.stack.folds.projector import Binding, Projector
from desk.stack.managed import definitions
from desk.stack.managed.definitions import EVERYWHERE, Definitions, binding, place_of
from desk.stack.managed.schemas import Compiled, SchemaError, Undecodable, compiled
from desk.stack.managed.surface import (
    Bare,
    CommandError,
    Context,
    Handler,
    PlainHandler,
    Request,
    Surface,
    SurfaceError,
)
from desk.stack.query import views
from desk.stack.query.views import Views
from desk.stack.store import Store
from desk.stack.wire import agdx, cbor
from desk.stack.wire.agdx import Feature
from desk.stack.wire.iggy import Record
from desk.stack.wire.registry import (
    CONTROL,
    DEFINITION,
    REQUESTS,
    SOURCE,
    Body,
    checked_binding,
    checked_projection,
)
from desk.stack.wire.shape import ANY, MAP, TEXT, ShapeError, check

NEVER_FROM_CLIENTS = frozenset({"AcceptGap", "SkipRecord", "FilterCatalog"})
Apply = Callable[["Registry", Any, str, Context], None]


class Registry(Surface):
    """Projections, bindings, schemas, session sources; and the folds that follow from them."""

    name = "registry"
    schema = views.SCHEMA + sources.SCHEMA + definitions.SCHEMA
    versions: ClassVar[Mapping[str, int]] = {"control": 1}
    features = Feature.WATCH
    shapes = REQUESTS
    writes: ClassVar[frozenset[int]] = frozenset({agdx.REGISTER_SCHEMA})

    def __init__(self, store: Store, log: Log) -> None:
        super().__init__(store, log)
        self.views = Views(store.db)
        self.definitions = Definitions(store.db)
        self.projector = Projector(store.db, log, self.views, Feed(log))
        self._appending = False  # the fold of our own control records is us, later in the same call

    def reload(self) -> None:
        self.definitions.reload()
        self.projector.reload()
        self._configure()

    # folds --------------------------------------------------------------------------------------------------

    def wants(self, stream: str, topic: str) -> bool:
        return self.projector.wants(stream, topic) or (
            stream == agdx.OPS_STREAM and topic == agdx.CONTROL_TOPIC
        )

    def appended(
        self, stream: str, topic: str, partition: int, records: Sequence[Record], context: Context
    ) -> None:
        if self.projector.wants(stream, topic):
            self.projector.fold(stream, topic, partition, records, context.now_us)
        if stream == agdx.OPS_STREAM and topic == agdx.CONTROL_TOPIC and not self._appending:
            for record in records:
                self._applied_from_log(record, context)

    def _applied_from_log(self, record: Record, context: Context) -> None:
        """A record somebody put on the control topic; what is no valid command changes nothing."""
        try:
            envelope = check(cbor.loads(record.payload), CONTROL)
            if envelope["v"] == 1:
                self._apply(envelope, context)
        except (cbor.DecodeError, ShapeError, CommandError, SurfaceError):
            return

    # control ------------------------------------------------------------------------------------------------

    def control(self, request: Request, context: Context) -> Bare:
        tag = _tag(request["command"])[0]
        if tag in NEVER_FROM_CLIENTS:
            raise CommandError("forbidden", f"{tag} is never accepted from a client")
        self._apply(request, context)
        stamp = {
            "deployment_id": 0,
            "actor_user_id": context.caller.user_id,
            "operation_id": context.operation_id,
            "key_id": 0,
        }
        self._record({**request, "timestamp_micros": context.now_us, "stamp": stamp})
        return Bare({"code": "ok", "message": ""})

    mutations: ClassVar[Mapping[int, Handler]] = {agdx.CONTROL_PUBLISH: control}

    def _record(self, envelope: Body) -> None:
        self.log.ensure(agdx.OPS_STREAM, agdx.CONTROL_TOPIC, 1)
        self._appending = True
        try:
            self.log.append(agdx.OPS_STREAM, agdx.CONTROL_TOPIC, 0, [(cbor.dumps(envelope), {})])
        finally:
            self._appending = False

    def _apply(self, envelope: Body, context: Context) -> None:
        """Apply one command; everything that can be refused is checked before anything changes."""
        tag, body = _tag(envelope["command"])
        apply = self._commands.get(tag)
        if apply is None:
            raise CommandError("unsupported", f"the control command {tag} is not served")
        apply(self, body, envelope.get("stream") or EVERYWHERE, context)
        for surface in context.surfaces.values():
            surface.configured(context)

    def _register_projection(self, body: Any, _stream: str, _context: Context) -> None:
        body = checked_projection(body)
        if self.definitions.projections.get(body["id"]) == body:
            return
        self.definitions.put_projection(body)
        self._configure()
        for bound in self.definitions.bound():
            if body["id"] in bound.projections:
                self.projector.rebuild(bound)

    def _drop_projection(self, body: Any, _stream: str, _context: Context) -> None:
        name = _text(body, "a projection id")
        self.definitions.drop_projection(name)
        self._configure()
        for place, held in list(self.definitions.bindings.items()):
            if name in binding(held).projections:
                self._without(place, held, name)

    def _apply_binding(self, body: Any, _stream: str, context: Context) -> None:
        body = checked_binding(body)
        before = self.definitions.bindings.get(place_of(body))
        if before == body:
            return
        self.definitions.put_binding(body)
        self._configure()
        if before is None or _what_rows_say(before) != _what_rows_say(body):
            self.projector.rebuild(binding(body))
        elif before.get("retention") != body.get("retention"):
            self.projector.retain(binding(body), context.now_us)

    def _remove_binding(self, body: Any, _stream: str, _context: Context) -> None:
        source = check(check(body, {"source": MAP})["source"], SOURCE)
        name = body.get("projection_ref")
        for place, held in list(self.definitions.bindings.items()):
            if place[:2] == (source["stream"], source["topic"]):
                if name is None:
                    self._drop(place, held)
                elif name in binding(held).projections:
                    self._without(place, held, name)

    def _without(self, place: definitions.Place, held: Body, name: str) -> None:
        """A binding minus one projection; without any it goes."""
        allowed = [p for p in held.get("allowed_projections") or () if p != name]
        default = held.get("default_projection")
        default = None if default == name else default
        if not allowed and default is None:
            self._drop(place, held)
            return
        fresh = {**held, "allowed_projections": allowed, "default_projection": default}
        self.definitions.put_binding(fresh)
        self._configure()
        self.projector.rebuild(binding(fresh))

    def _drop(self, place: definitions.Place, held: Body) -> None:
        self.definitions.drop_binding(place)
        last = all(index != place[2] for _, _, index in self.definitions.bindings)
        self.projector.remove(binding(held), last=last)
        self._configure()

    def _register_schema(self, body: Any, stream: str, _context: Context) -> None:
        body = check(body, DEFINITION)
        held = self.definitions.schemas.get((stream, body["id"]))
        if held is not None and held.body["source"] != body["source"]:
            raise CommandError("conflict", f"schema {body['id']} is taken by another definition")
        if held is not None and held.dropped:
            raise CommandError("conflict", f"schema {body['id']} was dropped, its id stays taken")
        _compiles(body["source"], lambda text: CommandError("invalid_argument", text))
        self._add_schema(stream, body)

    def _add_schema(self, stream: str, body: Body) -> None:
        self.definitions.put_schema(stream, body)
        streams = self.definitions.awaiting(stream, body["id"])
        for bound in self.definitions.bound():
            if bound.stream in streams:
                self.projector.rebuild(bound)

    def _drop_schema(self, body: Any, stream: str, _context: Context) -> None:
        held = self.definitions.schemas.get((stream, body)) if type(body) is int else None
        if held is not None:
            self.definitions.put_schema(stream, held.body, dropped=True)

    def _register_sessions(self, body: Any, _stream: str, context: Context) -> None:
        body = check(body, {"stream": TEXT, "topics": ANY})
        _sessions(context).register(body["stream"], body["topics"], context)

    def _remove_sessions(self, body: Any, _stream: str, context: Context) -> None:
        _sessions(context).unregister(check(body, {"stream": TEXT})["stream"], context)

    _commands: ClassVar[Mapping[str, Apply]] = {
        "RegisterProjection": _register_projection,
        "DropProjection": _drop_projection,
        "RegisterGraph": _register_projection,  # its plan is run by the graph fold
        "DropGraph": _drop_projection,
        "ApplyBinding": _apply_binding,
        "RemoveBinding": _remove_binding,
        "RegisterSchema": _register_schema,
        "DropSchema": _drop_schema,
        "RegisterSessionSource": _register_sessions,
        "RemoveSessionSource": _remove_sessions,
    }

    # browsing -----------------------------------------------------------------------------------------------

    def projection(self, request: Request, _context: Context) -> Body:
        found = self.definitions.projections.get(request["id"])
        return {"Projection": self._info(found) if found else None}

    def projections(self, request: Request, _context: Context) -> Body:
        infos = map(self._info, self.definitions.projections.values())
        return {"Projections": [info for info in infos if _listed(info, request)]}

    def get_schema(self, request: Request, _context: Context) -> Body:
        found = self.definitions.schemas.get((request.get("stream") or EVERYWHERE, request["id"]))
        return {"Schema": found.wire() if found else None}

    def list_schemas(self, request: Request, _context: Context) -> Body:
        stream, part = request.get("stream") or EVERYWHERE, request.get("name_contains") or ""
        found = sorted(self.definitions.schemas.items(), key=lambda item: item[0])
        kept = [s.wire() for (owner, _), s in found if owner == stream and part in (s.body.get("name") or "")]
        return {"Schemas": kept}

    def register_schema(self, request: Request, context: Context) -> Body:
        _compiles(request["source"], lambda text: SurfaceError({"Backend": text}))
        stream = request.get("stream") or EVERYWHERE
        body = {"id": self.definitions.next_schema(stream), "source": request["source"]}
        body.update({key: request[key] for key in ("name", "version") if key in request})
        self._add_schema(stream, body)
        envelope: Body = {"v": 1, "timestamp_micros": context.now_us, "command": {"RegisterSchema": body}}
        self._record(envelope if stream == EVERYWHERE else {**envelope, "stream": stream})
        return {"SchemaRegistered": body["id"]}

    def decode(self, request: Request, _context: Context) -> Body:
        found = self.definitions.schemas.get((request.get("stream") or EVERYWHERE, request["id"]))
        if found is None:
            return {"Decoded": None}
        try:
            return {"Decoded": compiled(found.body["source"]).decode(request["payload"])}
        except (SchemaError, Undecodable):
            return {"Decoded": None}

    plain: ClassVar[Mapping[int, PlainHandler]] = {
        agdx.GET_PROJECTION: projection,
        agdx.LIST_PROJECTIONS: projections,
        agdx.GET_SCHEMA: get_schema,
        agdx.LIST_SCHEMAS: list_schemas,
        agdx.REGISTER_SCHEMA: register_schema,
        agdx.DECODE_RECORD: decode,
    }

    def _info(self, projection: Body) -> Body:
        name = projection["id"]
        held = [body for body in self.definitions.bindings.values() if name in binding(body).projections]
        return {"projection": projection, "bindings": held} if held else {"projection": projection}

    def _configure(self) -> None:
        bound = self.definitions.bound()
        schemas = {b.stream: _writer(self.definitions, b) for b in bound}
        self.projector.configure(bound, self.definitions.extractions(), schemas)


def _writer(registered: Definitions, bound: Binding) -> Callable[[int], Compiled | None]:
    return lambda number: registered.writer(bound.stream, number)


def _tag(command: Any) -> tuple[str, Any]:
    if type(command) is not dict or len(command) != 1:
        raise CommandError("invalid_argument", "a control command is a map with one entry")
    return next(iter(command.items()))


def _text(value: Any, what: str) -> str:
    if type(value) is not str:
        raise ShapeError(f"{what} must be text")
    return value


def _sessions(context: Context) -> Any:
    sessions = context.surface("sessions")
    if sessions is None:
        raise CommandError("unsupported", "sessions are not served")
    return sessions


def _compiles(source: Any, refuse: Callable[[str], Exception]) -> None:
    try:
        compiled(source)
    except SchemaError as error:
        raise refuse(str(error)) from None


def _what_rows_say(body: Body) -> Any:
    """The part of a binding that decides which rows there are and what they hold."""
    return binding(body).projections, body.get("default_projection")


def _listed(info: Body, request: Request) -> bool:
    projection, topics = info["projection"], request.get("topics")
    if topics and not any(held["source"]["topic"] in topics for held in info.get("bindings", ())):
        return False
    search = request.get("search") or ""
    return (
        (request.get("name_contains") or "") in projection["name"]
        and projection["id"].startswith(request.get("id_prefix") or "")
        and (search in projection["name"] or search in projection["id"])
    )
