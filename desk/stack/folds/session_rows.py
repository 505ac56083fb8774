"""The tables of the session index: summaries, timelines, state, links, sources, changes.

A registered stream has a number, a session has a number; the other tables refer to those. Timelines are kept
in the order (broker time, topic, partition, offset), which does not depend on when a record was folded, so an
index rebuilt from the log equals the one that grew with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import apsw

from desk.stack.wire import cbor

SCHEMA = """
CREATE TABLE IF NOT EXISTS session_stream (
    num INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, topics BLOB NOT NULL, series INTEGER NOT NULL,
    stream_id INTEGER, generation INTEGER, lane BLOB
);
CREATE TABLE IF NOT EXISTS session (
    num INTEGER PRIMARY KEY, stream INTEGER NOT NULL, id BLOB NOT NULL, listed INTEGER NOT NULL,
    status TEXT NOT NULL, label TEXT, namespace TEXT, agent TEXT, parent BLOB, root BLOB,
    started_at INTEGER, ended_at INTEGER, first_event_at INTEGER, last_event_at INTEGER,
    last_heartbeat_at INTEGER, events INTEGER NOT NULL, model_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL, errors INTEGER NOT NULL, held INTEGER NOT NULL,
    pause_requested INTEGER NOT NULL, cancel_requested INTEGER NOT NULL, control_conflict INTEGER NOT NULL,
    begun INTEGER NOT NULL, budget BLOB, sdk BLOB, idle_timeout INTEGER, search TEXT NOT NULL,
    UNIQUE (stream, id)
);
CREATE TABLE IF NOT EXISTS session_event (
    session INTEGER NOT NULL, at_us INTEGER NOT NULL, topic INTEGER NOT NULL, partition INTEGER NOT NULL,
    "offset" INTEGER NOT NULL, item BLOB NOT NULL, PRIMARY KEY (session, at_us, topic, partition, "offset")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session_source (
    session INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL,
    PRIMARY KEY (session, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session_link (
    session INTEGER NOT NULL, surface TEXT NOT NULL, resource TEXT NOT NULL, item TEXT NOT NULL,
    relation TEXT NOT NULL, first BLOB NOT NULL, last BLOB NOT NULL,
    PRIMARY KEY (session, surface, resource, item, relation)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session_state (
    session INTEGER PRIMARY KEY, revision INTEGER NOT NULL, complete INTEGER NOT NULL,
    document BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS session_history (
    session INTEGER NOT NULL, seq INTEGER NOT NULL, op_id TEXT, item BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS session_operation ON session_history (session, op_id) WHERE op_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS session_gap (
    stream INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, upto INTEGER NOT NULL,
    PRIMARY KEY (stream, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session_change (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, item BLOB NOT NULL, PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
"""
KEPT_EVENTS = 10_000  # of one session; older ones go, and the summary says so
KEPT_CHANGES = 50_000  # of one stream
TRIM_EVERY = 256
PER_SESSION = ("session_event", "session_source", "session_link", "session_state", "session_history")


@dataclass(slots=True)
class Summary:
    """One session as `session` holds it. Times are epoch microseconds; `begun` says a start body was seen."""

    num: int
    stream: int
    id: bytes
    listed: bool = False
    status: str = "active"
    label: str | None = None
    namespace: str | None = None
    agent: str | None = None
    parent: bytes | None = None
    root: bytes | None = None
    started_at: int | None = None
    ended_at: int | None = None
    first_event_at: int | None = None
    last_event_at: int | None = None
    last_heartbeat_at: int | None = None
    events: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    errors: int = 0
    held: int = 0
    pause_requested: bool = False
    cancel_requested: bool = False
    control_conflict: bool = False
    begun: bool = False
    budget: bytes | None = None
    sdk: bytes | None = None
    idle_timeout: int | None = None
    search: str = ""


COLUMNS = tuple(field.name for field in fields(Summary))
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM session"
_INSERT = f"INSERT INTO session ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_CHANGING = COLUMNS[3:]  # num, stream and id never change
_UPDATE = f"UPDATE session SET {', '.join(f'{name} = ?' for name in _CHANGING)} WHERE num = ?"
_changing = attrgetter(*_CHANGING)


def find(db: apsw.Connection, stream: int, identity: bytes) -> Summary | None:
    """A session of a registered stream, listed or not."""
    row = db.execute(f"{_SELECT} WHERE stream = ? AND id = ?", (stream, identity)).fetchone()
    return Summary(*row) if row else None


def find_or_begin(db: apsw.Connection, stream: int, identity: bytes) -> Summary:
    """A session, made (unlisted) when it is not there."""
    found = find(db, stream, identity)
    if found is not None:
        return found
    fresh = Summary(db.execute("SELECT coalesce(max(num), 0) + 1 FROM session").get, stream, identity)
    db.execute(_INSERT, attrgetter(*COLUMNS)(fresh))
    return fresh


def save(db: apsw.Connection, summary: Summary) -> None:
    """Write a summary over its row."""
    db.execute(_UPDATE, (*_changing(summary), summary.num))


def select(db: apsw.Connection, where: str, values: tuple[Any, ...], limit: int) -> Iterator[Summary]:
    """Listed sessions that meet a condition, newest activity first."""
    rows = db.execute(
        f"{_SELECT} WHERE listed AND {where} ORDER BY last_event_at DESC, num DESC LIMIT ?",
        (*values, limit),
    )
    return (Summary(*row) for row in rows)


def add_event(db: apsw.Connection, summary: Summary, key: tuple[int, int, int, int], item: bytes) -> None:
    """Put an event on a timeline; `key` is (broker time, topic id, partition, offset)."""
    db.execute("INSERT OR REPLACE INTO session_event VALUES (?, ?, ?, ?, ?, ?)", (summary.num, *key, item))
    if summary.events > KEPT_EVENTS and summary.events % TRIM_EVERY == 0:
        db.execute(
            """DELETE FROM session_event WHERE session = ?1 AND (at_us, topic, partition, "offset") <
            (SELECT at_us, topic, partition, "offset" FROM session_event WHERE session = ?1
            ORDER BY at_us DESC, topic DESC, partition DESC, "offset" DESC LIMIT 1 OFFSET ?2)""",
            (summary.num, KEPT_EVENTS - 1),
        )


def add_source(db: apsw.Connection, session: int, topic: str, partition: int) -> None:
    """Remember that a partition holds records of a session."""
    db.execute("INSERT OR IGNORE INTO session_source VALUES (?, ?, ?)", (session, topic, partition))


def add_gap(db: apsw.Connection, stream: int, topic: str, partition: int, upto: int) -> None:
    """Note that the records up to an offset were gone before anybody could fold them."""
    db.execute("INSERT INTO session_gap VALUES (?, ?, ?, ?)", (stream, topic, partition, upto))


def gaps(db: apsw.Connection, summary: Summary) -> list[tuple[str, int, int]]:
    """(topic, partition, last offset) of the gaps in the partitions that hold records of a session."""
    return db.execute(
        """SELECT topic, partition, upto FROM session_gap JOIN session_source USING (topic, partition)
        WHERE stream = ? AND session = ?""",
        (summary.stream, summary.num),
    ).fetchall()


def add_link(
    db: apsw.Connection, session: int, surface: str, resource: str, item: str, relation: str, at: bytes
) -> None:
    """Link a session to a resource; a repeat only moves `last`. `at` is a 20-byte LogPosition."""
    db.execute(
        "INSERT INTO session_link VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT DO UPDATE SET last = ?6",
        (session, surface, resource, item, relation, at),
    )


def last_change(db: apsw.Connection, stream: int) -> int:
    """The newest change number of a stream, 0 when there is none."""
    return db.execute("SELECT coalesce(max(seq), 0) FROM session_change WHERE stream = ?", (stream,)).get


def add_change(db: apsw.Connection, stream: int, row: Mapping[str, Any]) -> None:
    """Append a change row (everything but its `seq`) and forget the oldest now and then."""
    seq = last_change(db, stream) + 1
    db.execute("INSERT INTO session_change VALUES (?, ?, ?)", (stream, seq, cbor.dumps({"seq": seq, **row})))
    if seq % TRIM_EVERY == 0:
        db.execute("DELETE FROM session_change WHERE stream = ? AND seq <= ?", (stream, seq - KEPT_CHANGES))


def forget_stream(db: apsw.Connection, stream: int) -> None:
    """Remove everything indexed of a stream, the registration too."""
    for table in PER_SESSION:
        db.execute(
            f"DELETE FROM {table} WHERE session IN (SELECT num FROM session WHERE stream = ?)", (stream,)
        )
    for statement in (
        "DELETE FROM session WHERE stream = ?",
        "DELETE FROM session_change WHERE stream = ?",
        "DELETE FROM session_gap WHERE stream = ?",
        "DELETE FROM session_stream WHERE num = ?",
    ):
        db.execute(statement, (stream,))
