"""The projector: records of bound topics become rows of views, inside the append's transaction.

One binding folds one topic into one view. Rows are built as plain lists and inserted in one go; a record whose
values have types its columns took before is not looked at value by value again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import apsw

from desk.stack.broker.log import Log
from desk.stack.folds.decoding import Schemas, decoded, header_text, scan_json
from desk.stack.folds.extraction import (
    CONVERSATION,
    CONVERSATION_FIELD,
    INDEX,
    MAX_INLINE_BYTES,
    Extraction,
    conversation,
    header_fields,
    vector_of,
    wants_payload,
)
from desk.stack.folds.feed import Feed
from desk.stack.folds.promotion import reapply
from desk.stack.folds.retention import Retention
from desk.stack.folds.sources import Source, Sources
from desk.stack.managed.schemas import Undecodable, Violation
from desk.stack.query.kinds import (
    BOOLEAN,
    DOUBLE,
    I64_MAX,
    I64_MIN,
    LONG,
    STRING,
    Misfit,
    fit,
    is_scalar,
    kind_of,
    text_of,
)
from desk.stack.query.relation import Gap
from desk.stack.query.vectors import unit_vector
from desk.stack.query.views import View, Views
from desk.stack.wire.iggy import Record

REFERENCE = "agdx.ref"
CHUNK = 1_000  # records of a rebuild projected at a time
NONE = type(None)
JSON_ONLY = {"agdx.ct": ("u8", b"\x01")}
TAKEN_AS_IT_IS = frozenset(
    {(str, STRING), (int, LONG), (float, DOUBLE), (int, DOUBLE), (bool, BOOLEAN), *((NONE, kind) for kind in (STRING, LONG, DOUBLE, BOOLEAN, None))}
)  # fmt: skip


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


@dataclass
class Layout:
    """Where an extraction's values go in a view's rows; made anew whenever a column changes."""

    view: View
    slots: list[int | None]
    straight: bool  # value n goes to c<n>, and there is no other column
    known: set[tuple[type, ...]] = field(default_factory=set)
    quick: "Quick | None" = None


Quick = Callable[[Record], list[Any] | None]


def _quick(keys: Sequence[str], known: set[tuple[type, ...]], vector: str) -> Quick:
    """The values of a record that is a plain JSON object of top-level fields whose types the columns know.

    None for every other record: that one takes the long way, which decides and counts.
    """
    seen: Any = None  # headers that were fine; records of a batch often share theirs

    def quick(record: Record) -> list[Any] | None:
        nonlocal seen
        headers = record.headers
        if headers is not seen:
            if headers and headers != JSON_ONLY:
                return None
            seen = headers
        try:
            text = str(record.payload, "utf-8")
            document, end = scan_json(text, 0)
        except (ValueError, StopIteration, RecursionError):
            return None
        if end != len(text) or type(document) is not dict or vector in document:
            return None
        get = document.get
        values = [get(key) for key in keys]
        return values if tuple(map(type, values)) in known else None

    return quick


class Projector:
    """All bindings at work. `schemas` compiles a writer schema of a stream by id."""

    def __init__(self, db: apsw.Connection, log: Log, views: Views, feed: Feed) -> None:
        self._db, self._log, self.views, self._feed = db, log, views, feed
        self.sources = Sources(db, log, views)
        self._bindings: dict[tuple[str, str], list[Binding]] = {}
        self._extractions: dict[str, Extraction] = {}
        self._layouts: dict[tuple[str, str], Layout] = {}
        self._schemas: Mapping[str, Schemas] = {}
        self._misfits: dict[str, list[Any]] = {}  # column -> [count, why], of the records at hand

    def configure(
        self,
        bindings: Iterable[Binding],
        extractions: Mapping[str, Extraction],
        schemas: Mapping[str, Schemas],
    ) -> None:
        """Take what the registry holds now; rows are not touched. `schemas[stream]` finds a writer schema."""
        self._bindings = {}
        for binding in bindings:
            self._bindings.setdefault((binding.stream, binding.topic), []).append(binding)
        self._extractions = dict(extractions)
        self._schemas = schemas
        self._layouts = {}

    def reload(self) -> None:
        """Read what the file says again."""
        self.views.reload()
        self.sources.reload()
        self._layouts, self._misfits = {}, {}
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
            if landed and binding.notify:
                self._feed.changed(binding.index, partition, records[0].offset, records[-1].offset, landed)
            if landed:
                self.sources.capped(binding, landed)
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
        self._layouts = {key: layout for key, layout in self._layouts.items() if key[0] != name}
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
        self.sources.recount(binding)
        self._feed.flush()

    def remove(self, binding: Binding, *, last: bool) -> None:
        """A binding is gone, and its rows with it; the view too when it was the `last` one of it."""
        self.sources.dropped(binding)
        if last:
            self.views.drop(binding.index)
        self._layouts = {}

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
        quick, inline = self._quick(binding)
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
            quick, inline = self._quick(binding)
        if rows:
            self._insert(binding.index, rows, bodies)
        for name, (count, why) in self._misfits.items():
            self.views.misfit(binding.index, name, why, count)
        self._misfits = {}
        return len(rows)

    def _quick(self, binding: Binding) -> tuple[Quick | None, bool]:
        """(the short way of the default projection once its columns are known, does it keep payloads)"""
        rules = self._extractions.get(binding.default or "")
        layout = self._layouts.get((binding.index, rules.id)) if rules else None
        if rules is None or layout is None or not layout.straight:
            return None, False
        if rules.keys is None or rules.content_type not in ("json", "any", "raw"):
            return None, False
        if layout.quick is None:
            layout.quick = _quick(rules.keys, layout.known, rules.vector[0])
        return layout.quick, rules.inline

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
        cells = self._cells(binding.index, rules, document, record)
        return None if cells is None else (cells, document)

    def _cells(self, index: str, rules: Extraction, document: Any, record: Record) -> list[Any] | None:
        """The cells c0, c1, ... of one record's row; None when it has no field at all."""
        values = rules.values(document)
        headers = record.headers
        extra = header_fields(record) if any(name.startswith(INDEX) for name in headers) else {}
        if values.count(None) == len(values) and not extra:
            return None
        if CONVERSATION in headers:
            extra.setdefault(CONVERSATION_FIELD, conversation(record))
        layout = self._layouts.get((index, rules.id)) or self._layout(index, rules)
        types = tuple(map(type, values))
        if types not in layout.known:
            fitted = [
                self._fitted(index, name, value)
                for (name, _, _), value in zip(rules.fields, values, strict=True)
            ]
            if not extra and not any(map(is_scalar, values)):
                return None
            layout = self._layouts.get((index, rules.id)) or self._layout(index, rules)
            columns = layout.view.columns
            kinds = [columns[name].kind for name, _, _ in rules.fields]
            if any(t is not NONE for t in types) and all(
                pair in TAKEN_AS_IT_IS for pair in zip(types, kinds, strict=True)
            ):
                layout.known.add(types)
            values = fitted
        if layout.straight and not extra:
            return values
        for name, value in extra.items():
            if name not in layout.view.columns:
                try:
                    self.views.declare(index, name)
                except IndexError:
                    continue
            extra[name] = self._fitted(index, name, value)
        if extra:
            layout = self._layouts.get((index, rules.id)) or self._layout(index, rules)
        cells: list[Any] = [None] * layout.view.width
        for slot, value in zip(layout.slots, values, strict=True):
            if slot is not None:
                cells[slot] = value
        for name, value in extra.items():
            column = layout.view.columns.get(name)
            if column is not None and column.slot is not None:
                cells[column.slot] = value
        return cells

    def _fitted(self, index: str, name: str, value: Any) -> Any:
        """One value as a cell of its column, which it may give its kind; a misfit is counted and left empty."""
        if not is_scalar(value):
            return None
        column = self.views.get(index).columns[name]  # type: ignore[union-attr]
        try:
            kind = column.kind or kind_of(value)
            kind, cell = fit(value, kind, read_text=column.hint)
        except Misfit as why:
            self._misfit(name, str(why))
            return None
        if kind != column.kind or column.slot is None:
            self.views.typed(index, name, kind)
            self._layouts = {}
        return cell

    def _layout(self, index: str, rules: Extraction) -> Layout:
        view = self.views.get(index)
        assert view is not None
        slots = [view.columns[name].slot for name, _, _ in rules.fields]
        straight = slots == list(range(view.width))
        layout = self._layouts[index, rules.id] = Layout(view, slots, straight)
        return layout

    def _insert(self, index: str, rows: list[list[Any]], bodies: list[Any]) -> None:
        view = self.views.get(index)
        assert view is not None
        self.views.tick(len(rows))
        width = 6 + view.width
        if len(rows[0]) < width:  # columns came while the batch was read
            for row in rows:
                row.extend([None] * (width - len(row)))
        names = "".join(f", c{slot}" for slot in range(view.width))
        sql = (
            f'INSERT INTO {view.table} (seq, source, partition, "offset", at, expires{names}) '
            f"VALUES ({', '.join('?' * width)})"
        )
        try:
            with self._db:
                self._db.executemany(sql, rows)
        except (OverflowError, UnicodeEncodeError):
            self._storable(view, rows)
            self._db.executemany(sql, rows)
        if bodies:
            self._db.executemany(f"INSERT INTO {view.bodies} VALUES (?, ?, ?)", bodies)

    def _storable(self, view: View, rows: list[list[Any]]) -> None:
        """Repair the rare cells that no SQLite cell can hold: integers beyond 64 bits, lone surrogates."""
        names = {column.slot: column.name for column in view.columns.values()}
        for row in rows:
            for at, cell in enumerate(row[6:], start=6):
                if isinstance(cell, str):
                    row[at] = text_of(cell)
                elif isinstance(cell, int) and not I64_MIN <= cell <= I64_MAX:
                    row[at] = None
                    self._misfit(names[at - 6], "an integer beyond 64 bits")

    def _misfit(self, name: str, why: str) -> None:
        entry = self._misfits.setdefault(name, [0, why])
        entry[0], entry[1] = entry[0] + 1, why


def _chunks(records: Iterator[Record], size: int) -> Iterator[list[Record]]:
    while chunk := list(islice(records, size)):
        yield chunk
