"""The memory fold: records that carry `agdx.mem.ns` become rows that recall and fetch read.

    {Item: {id, kind, body, origin?, producer?}}   a row under its id; scope and source from the record
    {Forget: {target, conversation?}}              the row goes, when it is of that conversation
    {Feedback: ...}                                nothing here; recall over the log ranks with it

An id that is a ULID is a recalled item: the first wins, and a forgotten one never comes back, also when the
tombstone overtook the item. Any other id is a named item: the last write wins.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from desk.stack.managed import rows
from desk.stack.managed.surface import Context, Surface
from desk.stack.wire import agdx, cbor
from desk.stack.wire.iggy import Record
from desk.stack.wire.records import (
    CONVERSATION,
    MEMORY_APP,
    MEMORY_NAMESPACE,
    MEMORY_USER,
    PRODUCER,
    is_id_text,
    text,
)
from desk.stack.wire.shape import BYTES, TEXT, Shape, ShapeError, check, optional

SCHEMA = """
CREATE TABLE IF NOT EXISTS memory_forgotten (
    namespace TEXT NOT NULL, target TEXT NOT NULL, conversation TEXT NOT NULL,
    PRIMARY KEY (namespace, target, conversation)
) WITHOUT ROWID;
"""
_ITEM: Shape = {"id": TEXT, "kind": TEXT, "body": BYTES}
_FORGET: Shape = {"target": TEXT, "conversation": optional(TEXT)}


class Memory(Surface):
    """Folds memory records into the key-value table."""

    name = "memory"
    schema = SCHEMA
    marker = MEMORY_NAMESPACE.encode()

    def wants(self, stream: str, topic: str) -> bool:
        return stream != agdx.OPS_STREAM

    def appended(
        self, stream: str, topic: str, partition: int, records: Sequence[Record], context: Context
    ) -> None:
        for record in records:
            if MEMORY_NAMESPACE in record.headers:
                self._fold(stream, topic, partition, record, context)

    def _fold(self, stream: str, topic: str, partition: int, record: Record, context: Context) -> None:
        namespace = text(record, MEMORY_NAMESPACE)
        entry = memory_record(record.payload)
        if not namespace or entry is None:
            return
        kind, body = entry
        if kind == "Item":
            self._remember(namespace, body, source_of(stream, topic, partition, record, context), record)
        elif kind == "Forget":
            self._forget(namespace, body["target"], body.get("conversation"), record.timestamp)

    def _remember(
        self, namespace: str, item: Mapping[str, Any], source: Mapping[str, Any], record: Record
    ) -> None:
        db, key, conversation = self.store.db, item["id"].encode(), text(record, CONVERSATION)
        if len(key) > agdx.MAX_KEY_BYTES or len(item["body"]) > agdx.MAX_VALUE_BYTES:
            return
        if is_id_text(item["id"]) and (
            rows.peek(db, namespace, key, record.timestamp)
            or self._is_forgotten(namespace, item["id"], conversation)
        ):
            return
        scope: dict[str, Any] = {"kind": item["kind"]}
        for field, header in (("agent", PRODUCER), ("user", MEMORY_USER), ("app", MEMORY_APP)):
            value = text(record, header)
            if value is not None:
                scope[field] = value
        if conversation is not None:
            scope["conversation"] = conversation
        scope["source"] = source
        scope["timestamp_micros"] = record.timestamp
        rows.put(db, namespace, key, item["body"], None, record.timestamp, scope, source)

    def _is_forgotten(self, namespace: str, target: str, conversation: str | None) -> bool:
        return bool(
            self.store.db.execute(
                """SELECT 1 FROM memory_forgotten
                WHERE namespace = ? AND target = ? AND conversation IN ('', ?)""",
                (namespace, target, conversation or ""),
            ).get
        )

    def _forget(self, namespace: str, target: str, conversation: str | None, now_us: int) -> None:
        db, key = self.store.db, target.encode()
        row = rows.peek(db, namespace, key, now_us)
        if row is not None:
            scope = cbor.loads(row.scope) if row.scope else {}
            if conversation is None or scope.get("conversation") == conversation:
                rows.drop(db, namespace, key)
        if is_id_text(target):
            db.execute(
                "INSERT OR IGNORE INTO memory_forgotten VALUES (?, ?, ?)",
                (namespace, target, conversation or ""),
            )


def memory_record(payload: bytes) -> tuple[str, dict[str, Any]] | None:
    """A memory record's variant and body, or None when the payload is none."""
    try:
        record = cbor.loads(payload)
        if type(record) is not dict or len(record) != 1:
            return None
        ((kind, body),) = record.items()
        return kind, check(body, {"Item": _ITEM, "Forget": _FORGET, "Feedback": {"target": TEXT}}[kind])
    except (cbor.DecodeError, ShapeError, KeyError):
        return None


def source_of(stream: str, topic: str, partition: int, record: Record, context: Context) -> dict[str, Any]:
    """A SourceRef to a record, by numeric ids and the topic's generation."""
    info = context.log.topic_info(stream, topic)
    assert info is not None  # the record was just appended there
    return {
        "Message": {
            "stream": info.stream_id,
            "topic": info.id,
            "partition": partition,
            "offset": record.offset,
            "generation": info.created_us,
        }
    }
