"""Where a view's rows come from, and when they go: topic incarnations, expired records, lifetimes, row limits.

Records leave the log without a word to the folds (expiry, purge, deletion of a topic). So every query asks for
the `gaps` between what the log has and what the rows were made from, and has them settled before it begins: the
rows are removed, and only those who were pinned before (cursors, severed forks) still see them. So does a fold.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import apsw

from desk.stack.broker.log import Log
from desk.stack.folds.retention import Retention
from desk.stack.query.relation import Gap
from desk.stack.query.views import View, Views
from desk.stack.wire.registry import MIRROR

SCHEMA = """
CREATE TABLE IF NOT EXISTS view_source (
    source INTEGER PRIMARY KEY, view INTEGER, stream TEXT, topic TEXT, created_us INTEGER);
CREATE TABLE IF NOT EXISTS view_partition (
    source INTEGER, partition INTEGER, next INTEGER, kept INTEGER, PRIMARY KEY (source, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS view_cap (view INTEGER PRIMARY KEY, live INTEGER);
"""
SWEEP_US = 1_000_000  # how often a busy stack removes what the log no longer has
PINNED_US = 300_000_000  # how long a cursor may count on removed rows
EVERYTHING = 1 << 62
_AGE = 'at, source, partition, "offset"'


class Fed(Protocol):
    """What this module needs of a binding."""

    stream: str
    topic: str
    index: str
    retention: Retention


@dataclass(frozen=True, slots=True)
class Source:
    """One incarnation of a topic as a view's source."""

    number: int
    created_us: int
    partitions: int


class Sources:
    """Sources of all views, and what happens to their rows. Times are epoch microseconds."""

    def __init__(self, db: apsw.Connection, log: Log, views: Views) -> None:
        self._db, self._log, self._views = db, log, views
        self._known: dict[
            tuple[int, str, str], tuple[int, int]
        ] = {}  # view, stream, topic -> number, created
        self._reach: dict[tuple[int, int], tuple[int, int]] = {}  # source, partition -> next, kept
        self._swept_us = 0
        self._mark: tuple[int, int] | None = None  # when, seq

    def reload(self) -> None:
        rows = self._db.execute(
            "SELECT view, stream, topic, source, created_us FROM view_source ORDER BY source"
        )
        self._known = {(view, stream, topic): (number, made) for view, stream, topic, number, made in rows}
        reach = self._db.execute("SELECT source, partition, next, kept FROM view_partition")
        self._reach = {(source, partition): (following, kept) for source, partition, following, kept in reach}
        self._swept_us, self._mark = 0, None

    def current(self, binding: Fed) -> Source | None:
        """The topic as it is now, None when there is none. A topic made again is a new source."""
        info = self._log.topic_info(binding.stream, binding.topic)
        if info is None:
            return None
        view = self._views.get(binding.index) or self._views.ensure(binding.index, trunk=True)
        key = view.number, binding.stream, binding.topic
        number, created = self._known.get(key, (0, 0))
        if created != info.created_us:
            if number and binding.retention.ends_with_topic:
                self._views.remove(view, "source = ?", (number,))
            self._db.execute(
                "INSERT INTO view_source (view, stream, topic, created_us) VALUES (?, ?, ?, ?)",
                (*key, info.created_us),
            )
            number = self._db.last_insert_rowid()
            self._known[key] = number, info.created_us
        return Source(number, info.created_us, info.partitions)

    def arrived(self, source: Source, binding: Fed, partition: int, first: int, last: int) -> None:
        """Records first..last of a partition are being folded. Offsets that start over mean a purge before."""
        following, kept = self._reach.get((source.number, partition), (0, 0))
        view = self._views.get(binding.index)
        if first < following and binding.retention.kind == MIRROR and view is not None:
            self._views.remove(view, "source = ? AND partition = ?", (source.number, partition))
            kept = 0
        self._reached(source.number, partition, last + 1, kept)

    def emptied(self, source: Source, binding: Fed) -> None:
        """Before a rebuild: take out what will be projected again, and the columns with it where nothing else
        stands on them: rows whose records are gone, other sources, forks."""
        view = self._views.get(binding.index)
        assert view is not None
        if binding.retention.kind == MIRROR:
            doomed, values = "source = ?", [source.number]
        else:
            place = '(source = ? AND partition = ? AND "offset" >= ?)'
            doomed = " OR ".join([place] * source.partitions)
            values = []
            for partition in range(source.partitions):
                values += [
                    source.number,
                    partition,
                    self._log.first(binding.stream, binding.topic, partition),
                ]
        stands = (
            f"SELECT EXISTS (SELECT 1 FROM {view.table} WHERE gone IS NULL AND NOT ({doomed})) "
            f"OR EXISTS (SELECT 1 FROM {view.forked}) OR EXISTS (SELECT 1 FROM fork WHERE cut IS NOT NULL)"
        )
        if self._db.execute(stands, values).get:
            self._views.remove(view, f"({doomed})", tuple(values))
        else:
            self._views.anew(view.name)

    def rebuilt(self, source: Source, partition: int, first: int, last: int) -> None:
        """A partition was projected from `first` to `last`."""
        self._reached(source.number, partition, last + 1, first)

    def dropped(self, binding: Fed) -> None:
        """The binding is gone: its rows too."""
        view = self._views.get(binding.index)
        if view is None:
            return
        key = view.number, binding.stream, binding.topic
        if key in self._known:
            numbers = "source IN (SELECT source FROM view_source WHERE view = ? AND stream = ? AND topic = ?)"
            self._views.remove(view, numbers, key)
            self._db.execute(f"DELETE FROM view_partition WHERE {numbers}", key)
            self._db.execute("DELETE FROM view_source WHERE view = ? AND stream = ? AND topic = ?", key)
            number, _ = self._known.pop(key)
            self._reach = {place: reach for place, reach in self._reach.items() if place[0] != number}

    def capped(self, index: str, limit: int) -> None:
        """Keep to the newest `limit` rows of a view, by their records' times: a rebuild keeps the same ones."""
        view = self._views.get(index)
        if view is None:
            return
        if not self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (f"{view.table}_age",)).get:
            self._count(view)
        surplus = self._db.execute("SELECT live FROM view_cap WHERE view = ?", (view.number,)).get - limit
        if surplus > 0:
            oldest = f"SELECT seq FROM {view.table} WHERE gone IS NULL ORDER BY {_AGE} LIMIT ?"
            self._views.remove(view, f"seq IN ({oldest})", (surplus,))

    def _count(self, view: View) -> None:
        """From now on SQLite knows how many rows of a view are live, and which are the oldest."""
        table, live = view.table, f"UPDATE view_cap SET live = live %s 1 WHERE view = {view.number}"
        self._db.execute(
            f"CREATE INDEX {table}_age ON {table} ({_AGE}) WHERE gone IS NULL;"
            f"CREATE TRIGGER {table}_landed AFTER INSERT ON {table} BEGIN {live % '+'}; END;"
            f"CREATE TRIGGER {table}_left AFTER UPDATE OF gone ON {table} "
            f"WHEN old.gone IS NULL AND new.gone IS NOT NULL BEGIN {live % '-'}; END;"
            "INSERT OR REPLACE INTO view_cap (view, live) "
            f"SELECT {view.number}, count(*) FROM {table} WHERE gone IS NULL;"
        )

    def retain(self, binding: Fed, now_us: int) -> None:
        """The binding's retention is another one now: it holds for the rows that are there, too."""
        view = self._views.get(binding.index)
        if view is None:
            return
        number, _ = self._known.get((view.number, binding.stream, binding.topic), (0, 0))
        ttl = binding.retention.ttl_us
        self._views.remove(view, "source = ? AND expires <= ?", (number, now_us))
        self._db.execute(
            f"UPDATE {view.table} SET expires = {'at + ?' if ttl else '?'} WHERE source = ? AND gone IS NULL",
            (ttl or None, number),
        )

    def gaps(self, view: View, bindings: Iterable[Fed]) -> list[Gap]:
        """Rows made from records that are no longer there."""
        out = []
        for binding in bindings:
            number, created = self._known.get((view.number, binding.stream, binding.topic), (0, 0))
            if not number:
                continue
            info = self._log.topic_info(binding.stream, binding.topic)
            if info is None or info.created_us != created:
                if binding.retention.ends_with_topic:
                    out.append(Gap(number, None, EVERYTHING))
            elif binding.retention.kind == MIRROR:
                out += [
                    Gap(number, partition, EVERYTHING)
                    for source, partition in self._reach
                    if source == number and partition >= info.partitions
                ]
                for partition in range(info.partitions):
                    following, kept = self._reach.get((number, partition), (0, 0))
                    first = self._log.first(binding.stream, binding.topic, partition)
                    purged = self._log.head(binding.stream, binding.topic, partition) + 1 < following
                    if purged or first > kept:
                        out.append(Gap(number, partition, EVERYTHING if purged else first))
        return out

    def sweep(self, bindings: Iterable[Fed], now_us: int) -> None:
        """Once in a while: remove rows in gaps and past their time, and forget what nobody is pinned to."""
        if now_us - self._swept_us < SWEEP_US:
            return
        self._swept_us = now_us
        by_view: dict[str, list[Fed]] = {}
        for binding in bindings:
            by_view.setdefault(binding.index, []).append(binding)
        for name, feeding in by_view.items():
            if (view := self._views.get(name)) is not None:
                self._swept(view, feeding, now_us)
        self._forget(now_us)

    def settle(self, view: View, feeding: Iterable[Fed]) -> None:
        """Remove the rows in gaps; nobody who comes later sees them, and the gaps are none any more."""
        for gap in self.gaps(view, feeding):
            if gap.partition is None:
                self._views.remove(view, "source = ?", (gap.source,))
                self._ended(gap.source)
                continue
            place = 'source = ? AND partition = ? AND "offset" < ?'
            self._views.remove(view, place, (gap.source, gap.partition, gap.before))
            following, _ = self._reach.get((gap.source, gap.partition), (0, 0))
            if gap.before == EVERYTHING:
                self._reach.pop((gap.source, gap.partition), None)
                place = "DELETE FROM view_partition WHERE source = ? AND partition = ?"
                self._db.execute(place, (gap.source, gap.partition))
            else:
                self._reached(gap.source, gap.partition, following, gap.before)

    def _ended(self, number: int) -> None:
        """A source will never give rows again."""
        for table in ("view_source", "view_partition"):
            self._db.execute(f"DELETE FROM {table} WHERE source = ?", (number,))
        self._known = {key: held for key, held in self._known.items() if held[0] != number}
        self._reach = {place: reach for place, reach in self._reach.items() if place[0] != number}

    def _swept(self, view: View, feeding: list[Fed], now_us: int) -> None:
        self.settle(view, feeding)
        if any(binding.retention.ttl_us for binding in feeding):
            self._views.remove(view, "expires <= ?", (now_us,))

    def _forget(self, now_us: int) -> None:
        when, seq = self._mark or (now_us, self._views.seq)
        if now_us - when >= PINNED_US:
            pins = [cut for (cut,) in self._db.execute("SELECT cut FROM fork WHERE cut IS NOT NULL")]
            self._views.forget_removed(seq, pins)
            self._mark = None
        self._mark = self._mark or (now_us, self._views.seq)

    def _reached(self, source: int, partition: int, following: int, kept: int) -> None:
        self._reach[source, partition] = following, kept
        self._db.execute(
            "INSERT OR REPLACE INTO view_partition VALUES (?, ?, ?, ?)", (source, partition, following, kept)
        )
