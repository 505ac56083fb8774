"""From a record's values to the cells of its row; columns get their kind here, and misfits are counted.

A record whose values have types that its columns took before is not looked at value by value again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from desk.stack.folds.decoding import scan_json
from desk.stack.folds.extraction import (
    CONVERSATION,
    CONVERSATION_FIELD,
    INDEX,
    Extraction,
    conversation,
    header_fields,
)
from desk.stack.query.kinds import (
    I64_MAX,
    I64_MIN,
    Misfit,
    fit,
    is_scalar,
    kind_of,
    text_of,
)
from desk.stack.query.views import View, Views
from desk.stack.wire.iggy import Record
from desk.stack.wire.query import BOOLEAN, DOUBLE, LONG, STRING

NONE = type(None)
JSON_ONLY = {"agdx.ct": ("u8", b"\x01")}
TAKEN_AS_IT_IS = frozenset(
    {
        (str, STRING), (int, LONG), (float, DOUBLE), (int, DOUBLE), (bool, BOOLEAN),
        *((NONE, kind) for kind in (STRING, LONG, DOUBLE, BOOLEAN, None)),
    }
)  # fmt: skip
"""(type of a value, kind of its column) where the value is the cell."""

Quick = Callable[[Record], list[Any] | None]
"""The cells of a record that needs no thought, None for every other record."""


@dataclass
class Layout:
    """Where an extraction's values go in a view's rows; made anew whenever a column changes."""

    view: View
    slots: list[int | None]
    straight: bool  # value n goes to c<n>, and there is no other column
    known: set[tuple[type, ...]] = field(default_factory=set)  # types of values that are cells as they are
    quick: Quick | None = None


class Cells:
    """Makes cells for rows of any view."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._layouts: dict[tuple[str, str], Layout] = {}
        self._misfits: dict[str, list[Any]] = {}  # column -> [count, why], of the records at hand

    def forget(self) -> None:
        """Views or projections changed."""
        self._layouts, self._misfits = {}, {}

    def quick(self, index: str, rules: Extraction | None) -> Quick | None:
        """The short way for plain JSON records, once the columns are known."""
        layout = self._layouts.get((index, rules.id)) if rules else None
        if rules is None or layout is None or not layout.straight:
            return None
        if rules.keys is None or rules.content_type not in ("json", "any", "raw"):
            return None
        if layout.quick is None:
            layout.quick = _quick(rules.keys, layout.known, rules.vector[0])
        return layout.quick

    def of(self, index: str, rules: Extraction, document: Any, record: Record) -> list[Any] | None:
        """The cells c0, c1, ... of one record's row; None when it has no field at all."""
        values = rules.values(document)
        headers = record.headers
        extra = header_fields(record) if any(name.startswith(INDEX) for name in headers) else {}
        if not extra and not any(map(is_scalar, values)):
            return None
        if CONVERSATION in headers:
            extra.setdefault(CONVERSATION_FIELD, conversation(record))
        layout = self._layout(index, rules)
        types = tuple(map(type, values))
        if types not in layout.known:
            names = [name for name, _, _ in rules.fields]
            values = [self._fitted(index, name, value) for name, value in zip(names, values, strict=True)]
            layout = self._layout(index, rules)
            kinds = (layout.view.columns[name].kind for name in names)
            as_they_are = all(pair in TAKEN_AS_IT_IS for pair in zip(types, kinds, strict=True))
            if as_they_are and any(kind is not NONE for kind in types):  # nothing but nulls is no row
                layout.known.add(types)
        if layout.straight and not extra:
            return values
        return self._scattered(index, rules, values, extra)

    def settle(self, index: str) -> None:
        """The records at hand are done: write what did not fit to the view's columns."""
        for name, (count, why) in self._misfits.items():
            self._views.misfit(index, name, why, count)
        self._misfits = {}

    def storable(self, view: View, rows: list[list[Any]], start: int) -> None:
        """Repair the rare cells, from column `start` of the rows on, that no SQLite cell can hold:

        integers beyond 64 bits, lone surrogates.
        """
        names = {column.slot: column.name for column in view.columns.values()}
        for row in rows:
            for at, cell in enumerate(row[start:], start=start):
                if isinstance(cell, str):
                    row[at] = text_of(cell)
                elif isinstance(cell, int) and not I64_MIN <= cell <= I64_MAX:
                    row[at] = None
                    self._misfit(names[at - start], "an integer beyond 64 bits")

    def _scattered(
        self, index: str, rules: Extraction, values: list[Any], extra: dict[str, Any]
    ) -> list[Any]:
        """The cells of values and header fields, each at its column's place."""
        for name, value in extra.items():
            view = self._views.get(index)
            if view is not None and name not in view.columns:
                try:
                    self._views.declare(index, name)
                except IndexError:
                    continue
            extra[name] = self._fitted(index, name, value)
        layout = self._layout(index, rules)
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
        view = self._views.get(index)
        if view is None or not is_scalar(value):
            return None
        column = view.columns[name]
        try:
            kind = column.kind or kind_of(value)
            kind, cell = fit(value, kind, read_text=column.hint)
        except Misfit as why:
            self._misfit(name, str(why))
            return None
        if kind != column.kind or column.slot is None:
            self._views.typed(index, name, kind)
            self._layouts = {}
        return cell

    def _misfit(self, name: str, why: str) -> None:
        entry = self._misfits.setdefault(name, [0, why])
        entry[0], entry[1] = entry[0] + 1, why

    def _layout(self, index: str, rules: Extraction) -> Layout:
        layout = self._layouts.get((index, rules.id))
        if layout is None:
            view = self._views.get(index)
            assert view is not None
            slots = [view.columns[name].slot for name, _, _ in rules.fields]
            layout = Layout(view, slots, slots == list(range(view.width)))
            self._layouts[index, rules.id] = layout
        return layout


def _quick(keys: Sequence[str], known: set[tuple[type, ...]], vector: str) -> Quick:
    """For records that are a plain JSON object of top-level fields whose types the columns know."""
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
