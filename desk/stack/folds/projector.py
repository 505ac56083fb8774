"""The projector: records of bound topics become rows of views, inside the append's transaction.

One binding folds one topic into one view. Rows are plain lists and are inserted in one go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import apsw

from desk.stack.broker.log import Log
from desk.stack.folds.cells import Cells
from desk.stack.folds.decoding import Schemas, decoded, header_text
from desk.stack.folds.extraction import INDEX, MAX_INLINE_BYTES, Extraction, vector_of, wants_payload
from desk.stack.folds.feed import Feed
from desk.stack.folds.promotion import arrived, reapply
from desk.stack.folds.retention import Retention
from desk.stack.folds.sources import Source, Sources
from desk.stack.managed.schemas import Undecodable, Violation
from desk.stack.query.relation import Gap
from desk.stack.query.vectors import unit_vector
from desk.stack.query.views import View, Views
from desk.stack.wire.iggy import Record

REFERENCE = "agdx.ref"
CHUNK = 1_000  # records of a rebuild projected at a time
PLACE = ("seq", "source", "partition", '"offset"', "at", "expires")  # what every row starts with


@dataclass(frozen=True, slots=True)
class Binding:
    """A registered binding: which topic feeds which view by which projections."""

    stream: str
    topic: str
    index: str
    allowed: tuple[str, ...]
    default: str | None
    notify: bool
    retention: Retention

    @property
    def projections(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.allowed, *((self.default,) if self.default else ()))))


class Projector:
    """All bindings at work. `schemas` compiles a writer schema of a stream by id."""

    def __init__(self, db: apsw.Connection, log: Log, views: Views, feed: Feed) -> None:
        self._db, self._log, self.views, self._feed = db, log, views, feed
        self.sources = Sources(db, log, views)
        self._bindings: dict[tuple[str, str], list[Binding]] = {}
        self._limits: dict[str, int] = {}  # view -> rows it may have
        self._extractions: dict[str, Extraction] = {}
        self._cells = Cells(views)
        self._schemas: Mapping[str, Schemas] = {}

    def configure(
        self,
        bindings: Iterable[Binding],
        extractions: Mapping[str, Extraction],
        schemas: Mapping[str, Schemas],
    ) -> None:
        """Take what the registry holds now; rows are not touched. `schemas[stream]` finds a writer schema."""
        self._bindings, self._limits = {}, {}
        for binding in bindings:
            self._bindings.setdefault((binding.stream, binding.topic), []).append(binding)
            if limit := binding.retention.rows:
                self._limits[binding.index] = min(limit, self._limits.get(binding.index, limit))
        self._extractions = dict(extractions)
        self._schemas = schemas
        self._cells.forget()

    def reload(self) -> None:
        """Read what the file says again."""
        self.views.reload()
        self.sources.reload()
        self._cells.forget()
        self._feed.forget()

    def wants(self, stream: str, topic: str) -> bool:
        return (stream, topic) in self._bindings

    def of_view(self, name: str) -> list[Binding]:
        """The bindings that feed a view."""
        return [b for bindings in self._bindings.values() for b in bindings if b.index == name]

    def fold(self, stream: str, topic: str, partition: int, records: Sequence[Record], now_us: int) -> None:
        """Project one append into every view bound to its topic, and let time do its work."""
        for binding in self._bindings.get((stream, topic), ()):
            source = self.sources.current(binding)
            if source is None:
                continue
            self.sources.arrived(source, binding, partition, records[0].offset, records[-1].offset)
            landed = self._project(binding, source, partition, records)
            arrived(self.views, binding.index, partition, records[0].offset, records[-1].offset)
            if landed and binding.notify:
                self._feed.changed(binding.index, partition, records[0].offset, records[-1].offset, landed)
            if landed:
                self._cap(binding.index)
        self.sources.sweep(self._all(), now_us)
        self._feed.flush()

    def rebuild(self, binding: Binding) -> None:
        """Project a binding's topic again, from the earliest record the log still has.

        Rows whose records are gone stay when the retention says so. Column kinds are decided anew when nothing
        else stands on them.
        """
        name = binding.index
        self.views.ensure(name, trunk=True)
        source = self.sources.current(binding)
        if source is not None:
            self.sources.emptied(source, binding)
        self._cells.forget()
        self.declare(name)
        if source is None:
            return
        for partition in range(source.partitions):
            first = self._log.first(binding.stream, binding.topic, partition)
            records = self._log.read(binding.stream, binding.topic, partition, first)
            landed, last = 0, first - 1
            for chunk in _chunks(records, CHUNK):
                landed += self._project(binding, source, partition, chunk)
                last = chunk[-1].offset
            self.sources.rebuilt(source, partition, first, last)
            if landed and binding.notify:
                self._feed.changed(name, partition, first, last, landed)
        reapply(self.views, name)
        self._cap(name)
        self._feed.flush(again=True)

    def retain(self, binding: Binding, now_us: int) -> None:
        """The binding's retention is another one now: it holds for the rows that are there, too."""
        self.sources.retain(binding, now_us)
        self._cap(binding.index)

    def remove(self, binding: Binding, *, last: bool) -> None:
        """A binding is gone, and its rows with it; the view too when it was the `last` one of it."""
        self.sources.dropped(binding)
        if last:
            self.views.drop(binding.index)
        self._cells.forget()

    def declare(self, name: str) -> None:
        """Make the columns of every field that the view's projections name."""
        for binding in self.of_view(name):
            for projection in binding.projections:
                rules = self._extractions.get(projection)
                for field_name, _, hint in rules.fields if rules else ():
                    self.views.declare(name, field_name, hint, bounded=False)

    def gaps(self, view: View) -> list[Gap]:
        """Rows of a view that a query must leave out, because their records are gone."""
        return self.sources.gaps(view, self.of_view(view.name))

    def settle(self, view: View) -> None:
        """Remove those rows; call inside a transaction."""
        self.sources.settle(view, self.of_view(view.name))

    def expiring(self, view: View) -> bool:
        """Does a row of this view have an end?"""
        return any(binding.retention.ttl_us for binding in self.of_view(view.name))

    def frontier(self, view: View) -> list[dict[str, Any]]:
        """How far each source partition of a view is applied: a synchronous fold is always at the head."""
        out = []
        for binding in self.of_view(view.name):
            info = self._log.topic_info(binding.stream, binding.topic)
            for partition in range(info.partitions if info else 0):
                head = self._log.head(binding.stream, binding.topic, partition)
                if info and head >= 0:
                    place = {"stream": binding.stream, "topic": binding.topic, "partition_id": partition}
                    out.append({**place, "topic_created_at_micros": info.created_us, "applied_offset": head})
        return out

    def _cap(self, name: str) -> None:
        if limit := self._limits.get(name):
            self.sources.capped(name, limit)

    def _all(self) -> Iterator[Binding]:
        return (binding for bindings in self._bindings.values() for binding in bindings)

    def _rules(self, binding: Binding, record: Record) -> Extraction | None:
        """The projection a record is for: the one its header names, when the binding allows it.

        A producer writes the name as typed, while a scoped client registered it under its stream.
        """
        if REFERENCE not in record.headers:
            return self._extractions.get(binding.default) if binding.default else None
        asked = header_text(record, REFERENCE)
        for name in (asked, f"stream:{binding.stream}/{asked}"):
            if name in binding.allowed:
                return self._extractions.get(name)
        return None

    def _project(self, binding: Binding, source: Source, partition: int, records: Sequence[Record]) -> int:
        """Insert the rows of some records of one partition; how many."""
        rows: list[list[Any]] = []
        bodies: list[tuple[int, bytes | None, bytes | None]] = []
        default = self._extractions.get(binding.default or "")
        quick, inline = self._cells.quick(binding.index, default), default is not None and default.inline
        ttl, number = binding.retention.ttl_us, source.number
        first = self.views.seq + 1
        for record in records:
            at = record.timestamp
            row = [first + len(rows), number, partition, record.offset, at, at + ttl if ttl else None]
            values = quick(record) if quick else None
            if values is not None:
                row += values
                if inline and len(record.payload) <= MAX_INLINE_BYTES:
                    bodies.append((row[0], record.payload, None))
                rows.append(row)
                continue
            rules = self._rules(binding, record)
            found = self._read(binding, rules, partition, record) if rules else None
            if rules is None or found is None:
                continue
            cells, document = found
            vector = vector_of(document, rules.vector)
            payload = record.payload if wants_payload(record, rules) else None
            if payload is not None or vector is not None:
                bodies.append((row[0], payload, None if vector is None else unit_vector(vector)))
            rows.append(row + cells)
            quick = self._cells.quick(binding.index, default)
        if rows:
            self._insert(binding.index, rows, bodies)
        self._cells.settle(binding.index)
        return len(rows)

    def _read(
        self, binding: Binding, rules: Extraction, partition: int, record: Record
    ) -> tuple[list[Any], Any] | None:
        """(cells, document) of one record; None when it is no row, and a capsule when it should have been one."""
        try:
            document = decoded(record, rules.content_type, self._schemas[binding.stream])
        except Undecodable as error:
            if isinstance(error, Violation) or not any(name.startswith(INDEX) for name in record.headers):
                where = binding.stream, binding.topic, partition
                self._feed.rejected(binding.index, *where, record, str(error), projection=rules.id)
                return None
            document = None
        cells = self._cells.of(binding.index, rules, document, record)
        return None if cells is None else (cells, document)

    def _insert(self, index: str, rows: list[list[Any]], bodies: list[Any]) -> None:
        view = self.views.get(index)
        assert view is not None
        self.views.tick(len(rows))
        names = (*PLACE, *(f"c{slot}" for slot in range(view.width)))
        if len(rows[0]) < len(names):  # columns came while the batch was read
            for row in rows:
                row.extend([None] * (len(names) - len(row)))
        marks = ", ".join("?" * len(names))
        sql = f"INSERT INTO {view.table} ({', '.join(names)}) VALUES ({marks})"
        try:
            with self._db:
                self._db.executemany(sql, rows)
        except (OverflowError, UnicodeEncodeError):
            self._cells.storable(view, rows, len(PLACE))
            self._db.executemany(sql, rows)
        if bodies:
            self._db.executemany(f"INSERT INTO {view.bodies} VALUES (?, ?, ?)", bodies)


def _chunks(records: Iterator[Record], size: int) -> Iterator[list[Record]]:
    while chunk := list(islice(records, size)):
        yield chunk
