"""The session fold: records of a registered stream become summaries, timelines, state, links and changes.

One call folds the records of one append. A conversation becomes a session the moment any record names it; it is
listed once a lifecycle status, or a record that names a parent or a root, says it is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw
import xxhash

from desk.stack.broker.log import TopicInfo
from desk.stack.folds import session_rows as rows
from desk.stack.folds.memory import memory_record
from desk.stack.folds.session_rows import Summary
from desk.stack.folds.session_state import fold_state
from desk.stack.wire import cbor, envelope, records
from desk.stack.wire.iggy import Record
from desk.stack.wire.shape import ID16, MAP, TEXT, U64, Shape, ShapeError, check, listed, optional

TERMINAL = frozenset({"completed", "failed", "canceled"})
MAX_CHANGE_POSITIONS = 256
MAX_LABEL_BYTES = 256
MAX_TOTAL = 1 << 62  # where counters stop; SQLite's integers end a little later

_START: Shape = {
    "label": optional(TEXT),
    "namespace": optional(TEXT),
    "agent": optional(TEXT),
    "sdk": optional(MAP),
    "parent": optional(ID16),
    "root": optional(ID16),
    "idle_timeout_micros": optional(U64),
    "budget": optional(MAP),
    "tags": optional(listed(TEXT)),
}
_HEARTBEAT: Shape = {"sessions": listed(ID16)}
_ENDS = {4: "completed", 5: "canceled", 6: "failed", 7: "failed"}


@dataclass(slots=True)
class Fold:
    """The records of one append to one partition of a registered stream."""

    db: apsw.Connection
    stream: int  # number of the registration
    name: str  # of the stream
    topic: str
    partition: int
    info: TopicInfo
    touched: dict[bytes, Summary] = field(default_factory=dict)
    changed: dict[bytes, None] = field(default_factory=dict)  # listed sessions that changed, in order
    positions: list[bytes] = field(default_factory=list)

    def run(self, batch: Sequence[Record]) -> None:
        """Fold the records and write what they changed."""
        if self.topic == envelope.HEARTBEATS_TOPIC:
            for record in batch:
                self._heartbeat(record)
            return
        for record in batch:
            self._record(record)
        for summary in self.touched.values():
            rows.save(self.db, summary)
        if self.changed:
            rows.add_change(
                self.db,
                self.stream,
                {
                    "sessions": list(self.changed),
                    "positions": self.positions[:MAX_CHANGE_POSITIONS],
                    "truncated": len(self.positions) > MAX_CHANGE_POSITIONS,
                },
            )

    def _heartbeat(self, record: Record) -> None:
        """Liveness only: no event, no change."""
        fields = envelope.envelope(record.payload)
        try:
            beat = check(envelope.body_map(fields or {}), _HEARTBEAT)
        except ShapeError:
            return
        for identity in beat["sessions"]:
            self.db.execute(
                """UPDATE session SET last_heartbeat_at = max(coalesce(last_heartbeat_at, 0), ?)
                WHERE stream = ? AND id = ?""",
                (record.timestamp, self.stream, identity),
            )

    def _record(self, record: Record) -> None:
        enveloped = records.ENVELOPE in record.headers
        fields = envelope.envelope(record.payload) if enveloped else None
        named = records.identity(record, records.CONVERSATION)
        identity = named or (fields["conversation"] if fields else None)
        if identity is None:
            return
        summary = self._summary(identity)
        position = records.log_position(self.info.stream_id, self.info.id, self.partition, record.offset)
        event = self._event(record, summary)
        if fields is not None and fields["conversation"] != identity:
            event.update(kind=fields["kind"], display="invalid")
        elif fields is not None:
            self._enveloped(summary, record, fields, event, position)
        else:
            self._plain(summary, record, event, position, undecodable=enveloped)
        summary.events += 1
        if summary.first_event_at is None:
            summary.first_event_at = record.timestamp
        summary.last_event_at = record.timestamp
        key = (record.timestamp, self.info.id, self.partition, record.offset)
        rows.add_event(self.db, summary, key, cbor.dumps(event))
        rows.add_source(self.db, summary.num, self.topic, self.partition)
        if summary.listed:
            self.changed[summary.id] = None
            self.positions.append(position)

    def _summary(self, identity: bytes) -> Summary:
        summary = self.touched.get(identity)
        if summary is None:
            summary = self.touched[identity] = rows.find_or_begin(self.db, self.stream, identity)
        return summary

    def _event(self, record: Record, summary: Summary) -> dict[str, Any]:
        """The start of an event item; the rest follows in the order of the wire."""
        at = {
            "stream": self.info.stream_id,
            "topic": self.info.id,
            "partition": self.partition,
            "offset": record.offset,
            "generation": self.info.created_us,
        }
        return {"at": {"Message": at}, "session": summary.id, "broker_ts": record.timestamp}

    # ---- records without an envelope

    def _plain(
        self, summary: Summary, record: Record, event: dict[str, Any], position: bytes, *, undecodable: bool
    ) -> None:
        event["kind"] = "event"
        event["display"] = "undecodable" if undecodable else self._plain_word(summary, record, position)
        agent = records.text(record, records.PRODUCER)
        for name, value in (
            ("agent", agent),
            ("addressee", records.text(record, records.ADDRESSEE)),
            ("correlation", records.identity(record, records.CORRELATION)),
        ):
            if value:
                event[name] = value
        if summary.status in TERMINAL:
            event["after_end"] = True
        _spend(
            summary,
            records.number(record, records.INPUT_TOKENS),
            records.number(record, records.OUTPUT_TOKENS),
            records.cost_micros(record),
        )
        parent = records.identity(record, records.PARENT)
        root = records.identity(record, records.ROOT)
        if parent or root:
            self._descends(summary, parent, root, position)
            summary.agent = summary.agent or agent
            _index_words(summary)

    def _plain_word(self, summary: Summary, record: Record, position: bytes) -> str:
        if self.topic == envelope.DLQ_TOPIC:
            summary.errors += 1
            return "dead_letter"
        if self.topic in envelope.JOURNAL_TOPICS:
            return "workflow.step"
        namespace = records.text(record, records.MEMORY_NAMESPACE)
        if namespace is None:
            return "agent.message"
        remembered = memory_record(record.payload)
        if remembered is None:
            return "undecodable"
        variant, body = remembered
        item = body.get("id") or body["target"]
        rows.add_link(self.db, summary.num, "memory", namespace, item, "wrote", position)
        return envelope.memory_display(variant)

    def _descends(self, summary: Summary, parent: bytes | None, root: bytes | None, position: bytes) -> None:
        """A session named as the child of another: listed, and linked from its parent."""
        summary.parent = summary.parent or parent
        summary.root = summary.root or root
        summary.listed = True
        if summary.parent:
            above = self._summary(summary.parent)
            item = records.id_text(summary.id)
            rows.add_link(self.db, above.num, "child", self.name, item, "touched", position)
            if above.listed:
                self.changed[above.id] = None

    # ---- envelopes

    def _enveloped(
        self,
        summary: Summary,
        record: Record,
        fields: Mapping[str, Any],
        event: dict[str, Any],
        position: bytes,
    ) -> None:
        shown = envelope.display(fields, self.topic)
        event["kind"] = fields["kind"]
        if "operation" in fields:
            event["operation"] = fields["operation"]
        event["display"] = shown
        event["agent"] = fields["source"]
        addressee = records.text(record, records.ADDRESSEE)
        if addressee:
            event["addressee"] = addressee
        for name, source in (("correlation", "correlation"), ("cause", "cause_at"), ("tool", "tool")):
            if source in fields and (name != "cause" or len(fields[source]) == 20):
                event[name] = fields[source]
        usage = _usage(fields.get("usage"))
        if usage:
            event["usage"] = usage
            _spend(summary, usage["input_tokens"], usage["output_tokens"], usage.get("cost_micros"))
        if summary.status in TERMINAL:
            event["after_end"] = True
        if fields.get("finish_reason"):
            event["summary"] = {"finish_reason": fields["finish_reason"]}
        self._count(summary, fields, shown)
        if fields["kind"] == "status" and fields.get("operation") == "session":
            self._lifecycle(summary, fields, shown, record, position)
        elif shown == "session.control":
            self._control(summary, fields["operation"], record)
        elif shown == "state.updated":
            fold_state(self.db, summary.num, fields, record.timestamp, position)
        elif shown == "context.retrieved":
            self._retrieved(summary, fields, position)
        if (fields.get("parent") or fields.get("root")) and fields["kind"] != "status":
            self._descends(summary, fields.get("parent"), fields.get("root"), position)

    def _count(self, summary: Summary, fields: Mapping[str, Any], shown: str) -> None:
        if shown == "model.request":
            summary.model_calls += 1
        elif shown == "tool.call":
            summary.tool_calls += 1
        elif shown == "session.parked":
            summary.held += 1
        elif shown == "session.unparked":
            summary.held = max(0, summary.held - 1)
        if fields["kind"] == "error":
            summary.errors += 1

    def _lifecycle(
        self, summary: Summary, fields: Mapping[str, Any], shown: str, record: Record, position: bytes
    ) -> None:
        summary.listed = True
        if shown in ("session.submitted", "session.started"):
            self._start(summary, fields, shown, record, position)
        elif shown == "session.resumed":
            summary.status = "active"
            summary.started_at = summary.started_at or record.timestamp
        elif shown == "session.paused":
            summary.status = "paused"
        elif fields.get("task_state") in _ENDS:
            summary.status = _ENDS[fields["task_state"]]
            summary.ended_at = record.timestamp

    def _start(
        self, summary: Summary, fields: Mapping[str, Any], shown: str, record: Record, position: bytes
    ) -> None:
        try:
            start = check(envelope.body_map(fields), _START)
        except ShapeError:
            start = {}
        started = shown == "session.started"
        if started or not summary.begun:
            summary.begun = True
            summary.label = _cut(start.get("label")) or summary.label
            summary.namespace = start.get("namespace") or summary.namespace
            summary.agent = start.get("agent") or summary.agent
            idle_timeout = start.get("idle_timeout_micros", summary.idle_timeout)
            summary.idle_timeout = idle_timeout and min(idle_timeout, MAX_TOTAL)
            budget = {k: v for k, v in (start.get("budget") or {}).items() if type(v) is int}
            summary.budget = cbor.dumps(budget) if budget else summary.budget
            sdk = start.get("sdk")
            if sdk and all(type(sdk.get(name)) is str for name in ("language", "version")):
                summary.sdk = cbor.dumps({"language": sdk["language"], "version": sdk["version"]})
            _index_words(summary, start.get("tags"))
        if started:
            summary.started_at = summary.started_at or record.timestamp
        summary.status, summary.ended_at = ("active" if started else "submitted"), None
        parent = start.get("parent") or fields.get("parent")
        root = start.get("root") or fields.get("root")
        if parent or root:
            self._descends(summary, parent, root, position)

    def _control(self, summary: Summary, operation: str, record: Record) -> None:
        text = records.id_text(summary.id)
        if xxhash.xxh32_intdigest(text.encode()) % self.info.partitions != self.partition:
            summary.control_conflict = True
        elif operation == "session_pause":
            summary.pause_requested = True
        elif operation == "session_resume":
            summary.pause_requested = False
        else:
            summary.cancel_requested = True
            if operation == "force_cancel" and summary.status not in TERMINAL:
                summary.status, summary.ended_at = "canceled", record.timestamp

    def _retrieved(self, summary: Summary, fields: Mapping[str, Any], position: bytes) -> None:
        items = envelope.body_map(fields).get("items")
        for item in items if type(items) is list else ():
            if type(item) is list and item and type(item[0]) is str:
                rows.add_link(self.db, summary.num, "memory", "", item[0], "recalled", position)


def _spend(summary: Summary, tokens_in: int | None, tokens_out: int | None, cost: int | None) -> None:
    summary.tokens_in = min(summary.tokens_in + (tokens_in or 0), MAX_TOTAL)
    summary.tokens_out = min(summary.tokens_out + (tokens_out or 0), MAX_TOTAL)
    summary.cost_micros = min(summary.cost_micros + (cost or 0), MAX_TOTAL)


def _usage(usage: Any) -> dict[str, int]:
    """Token usage whose known fields are sane; empty otherwise."""
    if type(usage) is not dict:
        return {}
    kept = {
        name: value for name, value in usage.items() if type(value) is int and 0 <= value < records.MAX_COUNT
    }
    return kept if "input_tokens" in kept and "output_tokens" in kept else {}


def _cut(label: str | None) -> str | None:
    """A label within its cap of 256 bytes."""
    return label and label.encode()[:MAX_LABEL_BYTES].decode("utf-8", "ignore")


def _index_words(summary: Summary, tags: list[str] | None = None) -> None:
    """What a text search over sessions looks in."""
    words = (summary.label, summary.namespace, summary.agent, *(tags or ()))
    summary.search = "\n".join(word for word in words if word).lower()
