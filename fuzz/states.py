"""A session's state through chains of deltas: patches that grow what they copy, over and over, within one session.

What must hold: every record is acknowledged soon, the document stays within its bound, its revision counts the deltas
that applied, and the history chains its digest from the empty document to this one.
"""

import hashlib
import json
from typing import Any

from desk.stack.folds.session_state import MAX_DOCUMENT_BYTES
from desk.stack.wire import agdx, cbor
from desk.stack.wire.codes import Code
from desk.stack.wire.iggy import Headers
from fuzz.whole import STREAM, Bytes, sent, stack

_WORDS = ("add", "remove", "replace", "move", "copy", "test", "what")
_PATHS = (
    "", "/a", "/b", "/a/-", "/a/0", "/a/1", "/b/a", "/a/b", "/b/-", "/", "/a/-1", "/a/00", "/c/d/e", "/~1~0", "/~2", "a",
    "/a/99999999999", "/a/9" * 40,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    0, 1, True, None, 0.5, 2**70, 10**400, float("nan"), "", "x", "x" * 300, "ä\0", [], [0], [[]], {}, {"a": []}, {"a": 1, "b": [1]},
    list(range(50)), {"k": {"k": {"k": {"k": []}}}}, b"x",
)  # fmt: skip
_TIMES = (1, 1, 1, 2, 19, 24, 64, 250, 257)


def states(data: bytes) -> None:
    """Up to six state records of one session."""
    source, made = Bytes(data), stack()
    made.begin()
    session = made.fresh_id()
    started = enveloped(session, {"agent": "fuzz"}, kind="status", operation="session", task_state=2)
    made.ask(Code.SEND, sent("agent.sessions", [started]))
    revision = 0
    for number in range(1 + source.byte() % 6):
        snapshot = source.byte() % 8 == 7
        base = revision if source.byte() % 8 else source.pick((0, 1, 5, 1 << 62, (1 << 64) - 1))
        body: dict[str, Any] = {"base_revision": base}
        if snapshot:
            body["document"] = source.pick(_VALUES)
        else:
            body |= {"patch": _patch(source), "op_id": f"op-{number if source.byte() % 4 else 0}"}
        made.ask(Code.SEND, sent("agent.sessions", [record(session, body, snapshot=snapshot)]))
        revision = _state(made, session)["revision"]
    _judge(_state(made, session))


def record(session: bytes, body: dict[str, Any], *, snapshot: bool = False) -> tuple[bytes, Headers]:
    """A state record as an agent writes it."""
    return enveloped(session, body, kind="event", operation="state_snapshot" if snapshot else "state_delta")


def enveloped(session: bytes, body: dict[str, Any], **fields: Any) -> tuple[bytes, Headers]:
    """A record of a session in an envelope."""
    fields |= {"record": bytes(16), "conversation": session, "source": "fuzz", "body": cbor.dumps(body)}
    return cbor.dumps(fields), {"agdx.av": ("u32", b"\1\0\0\0")}


def _patch(source: Bytes) -> list[dict[str, Any]]:
    """Operations, some of them many times in a row: that is how a small patch makes a large document."""
    patch: list[dict[str, Any]] = []
    for _ in range(1 + source.byte() % 6):
        operation = {"op": source.pick(_WORDS), "path": source.pick(_PATHS)}
        if operation["op"] in ("move", "copy"):
            operation["from"] = source.pick(_PATHS)
        elif source.byte() % 16:
            operation["value"] = source.pick(_VALUES)
        patch += [operation] * source.pick(_TIMES)
    return patch


def _state(made: Any, session: bytes) -> dict[str, Any]:
    request = {"stream": STREAM, "id": session, "history_limit": 100}
    return cbor.loads(made.ask(agdx.SESSION_STATE, cbor.dumps(request)))["Ok"]["State"]


def _judge(state: dict[str, Any]) -> None:
    written = json.dumps(
        state["document"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    assert len(written) <= MAX_DOCUMENT_BYTES, len(written)
    before = hashlib.sha256(b"{}").digest()
    for entry in state.get("history", ()):
        assert entry["outcome"] in ("applied", "stale", "duplicate", "rejected"), entry
        assert ("reason" in entry) == (entry["outcome"] == "rejected"), entry
        if "old_digest" in entry and entry["outcome"] != "applied":
            assert entry["new_digest"] == before, entry
        before = entry["new_digest"]
    assert before == hashlib.sha256(written).digest(), "the history ends at another document"
