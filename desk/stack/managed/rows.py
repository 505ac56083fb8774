"""The key-value table: live rows by namespace and key, versions, expiry, scans in byte order.

Used by the key-value surface, by fenced writes and by the memory fold. Expired rows are absent to every
read and precondition; they leave the file when overwritten, deleted, or swept a minute later.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import apsw

from desk.stack.wire import cbor

SCHEMA = """
CREATE TABLE IF NOT EXISTS kv (
    namespace TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
    expires_us INTEGER, conversation TEXT, scope BLOB, source BLOB,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kv_expiry ON kv (expires_us) WHERE expires_us IS NOT NULL;
CREATE INDEX IF NOT EXISTS kv_conversation ON kv (namespace, conversation) WHERE conversation IS NOT NULL;
"""
FOREVER = (1 << 63) - 1  # SQLite's largest integer: an expiry beyond it is one that never comes
SWEEP_AFTER_US, SWEEP_ROWS = 60_000_000, 256

_LIVE = "(expires_us IS NULL OR expires_us > ?)"
_PEEK = f"""SELECT value, version, expires_us, scope, source FROM kv
WHERE namespace = ? AND key = ? AND {_LIVE}"""
_PUT = """INSERT INTO kv VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET
value = excluded.value, expires_us = excluded.expires_us, conversation = excluded.conversation,
scope = excluded.scope, source = excluded.source,
version = CASE WHEN expires_us <= ?8 THEN 1 ELSE version + 1 END RETURNING version"""


class Row(NamedTuple):
    """One live row; `scope` and `source` are CBOR as stored, or None."""

    value: bytes
    version: int
    expires_us: int | None
    scope: bytes | None
    source: bytes | None


def prepare(db: apsw.Connection) -> None:
    """Give a connection the one function scans need."""
    db.create_scalar_function("is_utf8", _is_utf8, 1, deterministic=True)


def peek(db: apsw.Connection, namespace: str, key: bytes, now_us: int) -> Row | None:
    """The live row at a key, or None."""
    found = db.execute(_PEEK, (namespace, key, now_us)).fetchone()
    return Row._make(found) if found else None


def put(
    db: apsw.Connection,
    namespace: str,
    key: bytes,
    value: bytes,
    expires_us: int | None,
    now_us: int,
    scope: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
) -> int:
    """Write a row over whatever was there; its new version (1 when the key was not alive)."""
    if expires_us is not None and expires_us > FOREVER:
        expires_us = FOREVER
    conversation = scope.get("conversation") if scope else None
    scope_bytes = cbor.dumps(scope) if scope else None
    source_bytes = cbor.dumps(source) if source else None
    return db.execute(
        _PUT, (namespace, key, value, expires_us, conversation, scope_bytes, source_bytes, now_us)
    ).get


def drop(db: apsw.Connection, namespace: str, key: bytes) -> None:
    """Remove a row, alive or not."""
    db.execute("DELETE FROM kv WHERE namespace = ? AND key = ?", (namespace, key))


def set_expiry(db: apsw.Connection, namespace: str, key: bytes, expires_us: int | None) -> None:
    """Change when a row expires; its version stays."""
    if expires_us is not None and expires_us > FOREVER:
        expires_us = FOREVER
    db.execute("UPDATE kv SET expires_us = ? WHERE namespace = ? AND key = ?", (expires_us, namespace, key))


def scan(
    db: apsw.Connection, bounds: Mapping[str, Any], after: bytes | None, limit: int, now_us: int
) -> Iterator[tuple[bytes, bytes, int, int | None, bytes | None, bytes | None]]:
    """Live rows within a request's bounds in byte order, from after a key on, at most `limit`."""
    where, values = _where(bounds)
    if after is not None:
        where += " AND key > ?"
        values.append(after)
    sql = f"""SELECT key, value, version, expires_us, scope, source FROM kv
        WHERE {where} AND {_LIVE} ORDER BY key LIMIT ?"""
    return db.execute(sql, (*values, now_us, limit))


def drop_many(db: apsw.Connection, bounds: Mapping[str, Any]) -> int:
    """Remove every row within a request's bounds, expired ones too; how many."""
    where, values = _where(bounds)
    db.execute(f"DELETE FROM kv WHERE {where}", values)
    return db.changes()


def namespaces(db: apsw.Connection, now_us: int) -> Iterator[tuple[str, int]]:
    """Every namespace with live rows and how many, in byte order."""
    return db.execute(
        f"SELECT namespace, count(*) FROM kv WHERE {_LIVE} GROUP BY namespace ORDER BY namespace", (now_us,)
    )


def sweep(db: apsw.Connection, now_us: int) -> None:
    """Remove some of the rows that expired more than a minute ago."""
    db.execute(
        """DELETE FROM kv WHERE (namespace, key) IN
        (SELECT namespace, key FROM kv WHERE expires_us < ? LIMIT ?)""",
        (now_us - SWEEP_AFTER_US, SWEEP_ROWS),
    )


def _where(bounds: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """A request's bounds as SQL over bound parameters."""
    where, values = "namespace = ?", [bounds["namespace"]]
    prefix, start, end = bounds.get("prefix"), bounds.get("start"), bounds.get("end")
    if prefix:
        start = prefix if start is None or start < prefix else start
        behind = _behind(prefix)
        if behind is not None:
            end = behind if end is None or end > behind else end
    for clause, value in (
        ("key >= ?", start),
        ("key < ?", end),
        ("conversation = ?", bounds.get("conversation")),
    ):
        if value is not None:
            where += f" AND {clause}"
            values.append(value)
    if bounds.get("key_contains") is not None:
        where += " AND instr(key, ?) AND is_utf8(key)"
        values.append(bounds["key_contains"].encode())
    return where, values


def _behind(prefix: bytes) -> bytes | None:
    """The first key in byte order that no longer starts with a prefix; None when there is none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


def _is_utf8(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
