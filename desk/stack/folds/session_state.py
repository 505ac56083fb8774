"""A session's state document: deltas and snapshots at their revision, with a history that chains digests.

    state_delta     {base_revision, patch (RFC 6902), op_id}   applies when base_revision is the revision, then +1
    state_snapshot  {base_revision, document}                  the first sets the baseline, later ones need the revision

Documents are kept as canonical JSON (sorted keys, no spaces); digests are SHA-256 of that.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import apsw

from desk.stack.folds.json_patch import PatchError, apply_patch
from desk.stack.wire import cbor, envelope
from desk.stack.wire.shape import LIST, TEXT, U64, Shape, ShapeError, check, optional

MAX_REVISION = 1 << 62
MAX_DOCUMENT_BYTES = 1 << 20
MAX_LEVELS = 128  # of a document; what is deeper than CBOR's 256 in a reply, no client reads
_DELTA: Shape = {"base_revision": U64, "patch": LIST, "op_id": optional(TEXT)}
_SNAPSHOT: Shape = {"base_revision": U64}


@dataclass(frozen=True, slots=True)
class State:
    """A session's state document (canonical JSON), its revision and SHA-256; `complete` from a baseline on."""

    revision: int
    complete: bool
    document: bytes
    digest: bytes


INITIAL = State(0, False, b"{}", hashlib.sha256(b"{}").digest())


def fold_state(
    db: apsw.Connection, session: int, fields: Mapping[str, Any], at_us: int, position: bytes
) -> None:
    """Fold a state record's envelope into the state of session number `session`; rubbish is passed over."""
    body = envelope.body_map(fields)
    snapshot = fields["operation"] == "state_snapshot"
    try:
        check(body, _SNAPSHOT if snapshot else _DELTA)
    except ShapeError:
        return
    if body["base_revision"] > MAX_REVISION:
        return
    before, op_id = _read(db, session), body.get("op_id")
    repeated = not snapshot and op_id is not None and _is_repeated(db, session, op_id)
    after, outcome, reason = _next_state(before, body, snapshot=snapshot, repeated=repeated)
    if after != before:
        db.execute(
            "INSERT OR REPLACE INTO session_state VALUES (?, ?, ?, ?, ?)",
            (session, after.revision, after.complete, after.document, after.digest),
        )
    entry: dict[str, Any] = {"revision": after.revision}
    if type(op_id) is str:
        entry["op_id"] = op_id
    entry.update(outcome=outcome, at=position, broker_ts=at_us)
    entry["old_digest"] = after.digest if snapshot else before.digest
    entry["new_digest"] = after.digest
    if reason:
        entry["reason"] = reason
    db.execute(
        """INSERT INTO session_history VALUES
        (?1, (SELECT coalesce(max(seq), 0) + 1 FROM session_history WHERE session = ?1), ?2, ?3)""",
        (session, entry.get("op_id") if outcome == "applied" else None, cbor.dumps(entry)),
    )


def _read(db: apsw.Connection, session: int) -> State:
    found = db.execute(
        "SELECT revision, complete, document, digest FROM session_state WHERE session = ?", (session,)
    ).fetchone()
    return State(found[0], bool(found[1]), *found[2:]) if found else INITIAL


def _is_repeated(db: apsw.Connection, session: int, op_id: str) -> bool:
    return bool(
        db.execute("SELECT 1 FROM session_history WHERE session = ? AND op_id = ?", (session, op_id)).get
    )


def _next_state(
    before: State, body: Mapping[str, Any], *, snapshot: bool, repeated: bool
) -> tuple[State, str, str | None]:
    """The state after a delta or snapshot, its outcome word, and why it was rejected."""
    base = body["base_revision"]
    if snapshot:
        if before.complete and base != before.revision:
            return before, "stale", None
        try:
            return _state_of(base, body.get("document")), "applied", None
        except (TypeError, ValueError, RecursionError) as error:
            return before, "rejected", str(error)
    if repeated:
        return before, "duplicate", None
    complete = before.complete or (base == 0 and before.revision == 0)
    before = replace(before, complete=complete)
    if base != before.revision:
        return before, "stale", None
    try:
        document = apply_patch(json.loads(before.document), body["patch"])
        after = _state_of(before.revision + 1, document)
    except (PatchError, TypeError, ValueError, RecursionError) as error:
        return before, "rejected", str(error)
    return replace(after, complete=complete), "applied", None


def _check_levels(document: Any) -> None:
    level = [document]
    for _ in range(MAX_LEVELS + 1):
        level = [item for value in level if isinstance(value, dict | list) for item in _items(value)]
        if not level:
            return
    raise ValueError(f"a state document has at most {MAX_LEVELS} levels")


def _items(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _state_of(revision: int, document: Any) -> State:
    _check_levels(document)
    written = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    data = written.encode()
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"a state document has at most {MAX_DOCUMENT_BYTES} bytes")
    return State(revision, True, data, hashlib.sha256(data).digest())
