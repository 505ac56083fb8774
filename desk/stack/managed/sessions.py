"""The session index: registration of streams, and the seven reads over what the fold has written.

What the reads carry is in wire/session.py. The fold runs inside the append's transaction, so a record is in
every answer before its publish is acknowledged.
"""

import heapq
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from desk.stack.broker.log import TopicInfo
from desk.stack.folds import session_rows as rows
from desk.stack.folds.session_rows import Summary
from desk.stack.folds.sessions import Fold
from desk.stack.managed import session_views as views
from desk.stack.managed.surface import Context, Request, Surface, SurfaceError
from desk.stack.wire import agdx, cbor, envelope, session
from desk.stack.wire.iggy import Record
from desk.stack.wire.records import id_text, log_position
from desk.stack.wire.shape import TEXT, check, listed

UNLISTED_TOPICS = frozenset({envelope.REGISTRY_TOPIC})  # not of any one session
MUTATION_TOPICS = {"kv": agdx.KV_TOPIC, "graph_node": agdx.GRAPH_TOPIC, "graph_edge": agdx.GRAPH_TOPIC}


@dataclass(slots=True)
class Registered:
    """A registered stream: which incarnation of it, which of its topics, its change series, its frozen lane."""

    num: int
    name: str
    topics: frozenset[str] | None  # None: all but UNLISTED_TOPICS
    series: int
    generation: int | None  # creation of the stream in epoch microseconds, None until it exists
    lane: list[int] | None  # [topic id, creation, partitions] of agent.sessions as first seen

    def covers(self, topic: str) -> bool:
        return topic not in UNLISTED_TOPICS if self.topics is None else topic in self.topics


class Sessions(Surface):
    """Folds registered streams and answers session reads."""

    name = "sessions"
    schema = rows.SCHEMA
    versions = MappingProxyType({"agent": 1})
    features = agdx.Feature.SESSIONS
    shapes = session.REQUESTS

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._streams: dict[str, Registered] = {}

    def reload(self) -> None:
        found = self.store.db.execute(
            "SELECT num, name, topics, series, generation, lane FROM session_stream"
        )
        self._streams = {
            name: Registered(
                num, name, _topic_set(cbor.loads(topics)), series, generation, lane and cbor.loads(lane)
            )
            for num, name, topics, series, generation, lane in found
        }

    # ---- registration, called by the registry

    def register(self, stream: str, topics: Any, context: Context) -> None:
        """Index a stream (`"All"` or `{"Named": [topic]}`) from its earliest record on; idempotent."""
        known = self._streams.get(stream)
        wanted = _topic_set(topics)
        if known is not None:
            if known.topics == wanted:
                return
            self.unregister(stream, context)
        db = self.store.db
        series = secrets.randbits(62) | 1
        num = db.execute("SELECT coalesce(max(num), 0) + 1 FROM session_stream").get
        db.execute(
            "INSERT INTO session_stream (num, name, topics, series) VALUES (?, ?, ?, ?)",
            (num, stream, cbor.dumps(topics), series),
        )
        registered = self._streams[stream] = Registered(num, stream, wanted, series, None, None)
        self._identify(registered)
        self._rebuild(registered)

    def unregister(self, stream: str, context: Context) -> None:
        """Forget a stream and everything indexed of it."""
        known = self._streams.pop(stream, None)
        if known is not None:
            rows.forget_stream(self.store.db, known.num)

    def _identify(self, registered: Registered) -> None:
        """Freeze which incarnation of the stream and of its lane the registration means, once they exist."""
        known = (registered.generation, registered.lane)
        if registered.generation is None:
            stream = self.log.stream_info(registered.name)
            if stream is None:
                return
            registered.generation = stream.created_us
        if registered.lane is None:
            lane = self.log.topic_info(registered.name, envelope.LANE_TOPIC)
            if lane is not None and lane.stream_created_us == registered.generation:
                registered.lane = [lane.id, lane.created_us, lane.partitions]
        if known == (registered.generation, registered.lane):
            return
        self.store.db.execute(
            "UPDATE session_stream SET generation = ?, lane = ? WHERE num = ?",
            (registered.generation, registered.lane and cbor.dumps(registered.lane), registered.num),
        )

    def _rebuild(self, registered: Registered) -> None:
        """Fold what already lies in the stream, in the order it was appended."""
        sources = []
        for topic in self.log.topics(registered.name):
            info = self.log.topic_info(registered.name, topic)
            for partition in range(info.partitions if info and registered.covers(topic) else 0):
                first = self.log.first(registered.name, topic, partition)
                if first:
                    rows.add_gap(self.store.db, registered.num, topic, partition, first - 1)
                sources.append(self._records(registered.name, topic, partition, info, first))
        for _, topic, partition, info, record in heapq.merge(*sources, key=lambda entry: entry[0]):
            self._fold(registered, topic, partition, info, [record])

    def _records(
        self, stream: str, topic: str, partition: int, info: TopicInfo, first: int
    ) -> Iterator[tuple[tuple[int, int, int, int], str, int, TopicInfo, Record]]:
        for record in self.log.read(stream, topic, partition, first):
            yield (record.timestamp, info.id, partition, record.offset), topic, partition, info, record

    # ---- folding

    def wants(self, stream: str, topic: str) -> bool:
        registered = self._streams.get(stream)
        return registered is not None and registered.covers(topic)

    def appended(
        self, stream: str, topic: str, partition: int, records: Sequence[Record], context: Context
    ) -> None:
        registered, info = self._streams[stream], self.log.topic_info(stream, topic)
        assert info is not None  # the records were just appended there
        if registered.generation is None or registered.lane is None:
            self._identify(registered)
        if info.stream_created_us == registered.generation:
            self._fold(registered, topic, partition, info, records)

    def _fold(
        self, registered: Registered, topic: str, partition: int, info: TopicInfo, records: Sequence[Record]
    ) -> None:
        Fold(self.store.db, registered.num, registered.name, topic, partition, info).run(records)

    def link(
        self, reference: Mapping[str, Any], surface: str, resource: str, item: str, context: Context
    ) -> None:
        """A managed write made in a session: link what it wrote, and say that the session changed."""
        registered = self._streams.get(reference["stream"])
        if registered is None:
            return
        assert context.position is not None  # links come from mutations
        topic = self.log.ensure(agdx.OPS_STREAM, MUTATION_TOPICS[surface], 1)
        at = log_position(topic.stream_id, topic.id, 0, context.position.offset)
        db = self.store.db
        summary = rows.find_or_begin(db, registered.num, reference["session"])
        rows.add_link(db, summary.num, surface, resource, item, "wrote", at)
        if summary.listed:
            change = {"sessions": [summary.id], "positions": [at], "truncated": False, "origin": "links"}
            rows.add_change(db, registered.num, change)

    # ---- reads

    def get(self, request: Request, context: Context) -> Any:
        registered, summary = self._session(request)
        return {
            "Info": views.info(registered.name, summary, self._frontier(registered, summary), context.now_us)
        }

    def list(self, request: Request, context: Context) -> Any:
        registered = self._registered(request)
        limit = views.limit(request["limit"])
        where, values = views.conditions(registered.num, request)
        total = (
            self.store.db.execute(f"SELECT count(*) FROM session WHERE listed AND {where}", values).get
            if request["want_total"]
            else None
        )
        if "cursor" in request:
            at_us, num = views.numbers(request["cursor"], 2)
            where += " AND (last_event_at, num) < (?, ?)"
            values += (at_us, num)
        found = list(rows.select(self.store.db, where, values, limit + 1))
        page: dict[str, Any] = {
            "items": [
                views.info(registered.name, summary, self._frontier(registered, summary), context.now_us)
                for summary in found[:limit]
            ]
        }
        if len(found) > limit:
            last = found[limit - 1]
            page["cursor"] = f"{last.last_event_at}.{last.num}"
        if total is not None:
            page["total"] = total
        page["truncated"] = False
        return {"Page": page}

    def events(self, request: Request, context: Context) -> Any:
        registered, summary = self._session(request)
        limit, fixed = views.limit(request["limit"]), request["fixed_frontier"]
        db = self.store.db
        after, until = (-1, 0, 0, 0), None
        if "cursor" in request:
            numbers = views.numbers(request["cursor"], 4, 8)
            after, until = numbers[:4], numbers[4:] or None
        elif fixed:
            until = db.execute(
                """SELECT at_us, topic, partition, "offset" FROM session_event WHERE session = ?
                ORDER BY at_us DESC, topic DESC, partition DESC, "offset" DESC LIMIT 1""",
                (summary.num,),
            ).fetchone()
        bound = """ AND (at_us, topic, partition, "offset") <= (?, ?, ?, ?)""" if until else ""
        found = db.execute(
            f"""SELECT at_us, topic, partition, "offset", item FROM session_event WHERE session = ?
            AND (at_us, topic, partition, "offset") > (?, ?, ?, ?){bound}
            ORDER BY at_us, topic, partition, "offset" LIMIT ?""",
            (summary.num, *after, *(until or ()), limit + 1),
        ).fetchall()
        page: dict[str, Any] = {"items": [cbor.loads(item) for *_, item in found[:limit]]}
        if len(found) > limit:
            page["cursor"] = ".".join(map(str, (*found[limit - 1][:4], *(until or ()))))
        if ranges := views.ranges(page["items"]):
            page["ranges"] = ranges
        if frontier := self._frontier(registered, summary):
            page["frontier"] = frontier
        page["fixed_frontier"] = fixed
        if gaps := self._gaps(registered, summary):
            page["gaps"] = gaps
        return {"Events": page}

    def state(self, request: Request, context: Context) -> Any:
        _, summary = self._session(request)
        db = self.store.db
        found = db.execute(
            "SELECT revision, document, complete FROM session_state WHERE session = ?", (summary.num,)
        ).fetchone()
        revision, document, complete = found or (0, b"{}", True)
        view: dict[str, Any] = {"revision": revision, "document": json.loads(document)}
        history = db.execute(
            "SELECT item FROM session_history WHERE session = ? ORDER BY seq DESC LIMIT ?",
            (summary.num, views.limit(request["history_limit"])),
        ).fetchall()
        if history:
            view["history"] = [cbor.loads(item) for (item,) in reversed(history)]
        view["complete"] = bool(complete)
        return {"State": view}

    def links(self, request: Request, context: Context) -> Any:
        registered, summary = self._session(request)
        surface = request.get("surface")
        found = self.store.db.execute(
            """SELECT surface, resource, item, relation, first, last FROM session_link
            WHERE session = ?1 AND (?2 IS NULL OR surface = ?2) LIMIT ?3""",
            (summary.num, surface, views.MAX_LIMIT + 1),
        ).fetchall()
        names = ("surface", "resource", "item", "relation", "first", "last")
        view: dict[str, Any] = {
            "links": [dict(zip(names, link, strict=True)) for link in found[: views.MAX_LIMIT]]
        }
        if frontier := self._frontier(registered, summary):
            view["frontier"] = frontier
        view["truncated"] = len(found) > views.MAX_LIMIT
        return {"Links": view}

    def sources(self, request: Request, context: Context) -> Any:
        registered = self._registered(request)
        sources: list[dict[str, int]] = []
        if not request.get("lane_only"):
            registered, summary = self._session(request)
            sources = self._frontier(registered, summary)
        view: dict[str, Any] = {"sources": sources}
        lane = registered.lane or self._lane(registered)
        if lane:
            view["lane"] = lane
        return {"Sources": view}

    def changes(self, request: Request, context: Context) -> Any:
        registered = self._registered(request)
        db, after, series = self.store.db, request["after"], registered.series
        newest = rows.last_change(db, registered.num)
        if request.get("series", series) != series:
            return {"Changes": {"rows": [], "floor": newest, "resync": True, "series": series}}
        oldest = db.execute("SELECT min(seq) FROM session_change WHERE stream = ?", (registered.num,)).get
        floor = oldest or newest + 1
        found = db.execute(
            "SELECT item FROM session_change WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            (registered.num, min(after, (1 << 63) - 1), views.limit(request["limit"])),
        )
        view = {
            "rows": [cbor.loads(item) for (item,) in found],
            "floor": floor,
            "resync": after + 1 < floor,
            "series": series,
        }
        return {"Changes": view}

    barrier_reads = MappingProxyType(
        {
            agdx.SESSION_GET: get,
            agdx.SESSION_LIST: list,
            agdx.SESSION_EVENTS: events,
            agdx.SESSION_STATE: state,
            agdx.SESSION_LINKS: links,
            agdx.SESSION_SOURCES: sources,
            agdx.SESSION_CHANGES: changes,
        }
    )

    def _registered(self, request: Request) -> Registered:
        registered = self._streams.get(request["stream"])
        if registered is None:
            raise SurfaceError({"NotRegistered": request["stream"]})
        return registered

    def _session(self, request: Request) -> tuple[Registered, Summary]:
        registered = self._registered(request)
        summary = rows.find(self.store.db, registered.num, request["id"])
        if summary is None or not summary.listed:
            raise SurfaceError({"NotFound": id_text(request["id"])})
        return registered, summary

    def _lane(self, registered: Registered) -> "list[int] | None":
        """The lane of a registration made before it existed; not frozen, a read writes nothing."""
        lane = self.log.topic_info(registered.name, envelope.LANE_TOPIC)
        if lane is None or registered.generation not in (None, lane.stream_created_us):
            return None
        return [lane.id, lane.created_us, lane.partitions]

    def _gaps(self, registered: Registered, summary: Summary) -> "list[dict[str, Any]]":
        """Where a timeline may lack its beginning: retention was faster than the registration."""
        return [
            {
                "topic_id": info.id,
                "topic_generation": info.created_us,
                "partition_id": partition,
                "from": 0,
                "to": upto,
                "reason": "expired_before_fold",
            }
            for topic, partition, upto in rows.gaps(self.store.db, summary)
            if (info := self.log.topic_info(registered.name, topic))
        ]

    def _frontier(self, registered: Registered, summary: Summary) -> "list[dict[str, int]]":
        """The partitions that hold a session's records; folded is the head, because folding is synchronous."""
        found = self.store.db.execute(
            "SELECT topic, partition FROM session_source WHERE session = ?", (summary.num,)
        )
        frontier = []
        for topic, partition in found:
            info = self.log.topic_info(registered.name, topic)
            if info is None or info.stream_created_us != registered.generation:
                continue
            head = self.log.head(registered.name, topic, partition)
            frontier.append(
                {
                    "topic_id": info.id,
                    "topic_generation": info.created_us,
                    "partition_id": partition,
                    "folded": max(head, 0),
                    "head": max(head, 0),
                    "retained_from": self.log.first(registered.name, topic, partition),
                }
            )
        return frontier


def _topic_set(topics: Any) -> frozenset[str] | None:
    """The topics of a registration, None for all; ShapeError when they are neither."""
    if topics == "All":
        return None
    return frozenset(check(topics, {"Named": listed(TEXT)})["Named"])
