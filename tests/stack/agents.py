"""Records as agents write them: envelopes with their headers, plain records with provenance."""

from typing import Any

from desk.stack.wire import cbor
from desk.stack.wire.records import id_text

STATES = {
    "submitted": 1,
    "working": 2,
    "input_required": 3,
    "completed": 4,
    "canceled": 5,
    "failed": 6,
    "rejected": 7,
    "auth_required": 8,
    "unknown": 9,
    "paused": 10,
}
Record = tuple[bytes, dict[str, tuple[str, bytes]]]


def session_id(number: int) -> bytes:
    """A readable 16-byte conversation id."""
    return number.to_bytes(16, "big")


def headers(session: bytes, **more: str) -> dict[str, tuple[str, bytes]]:
    """Provenance headers; keyword names are `agent`, `parent`, `root`, `to`, or a full name with `_` for `.`."""
    names = {
        "agent": "gen_ai.agent.id",
        "parent": "agdx.parent_conv",
        "root": "agdx.root_conv",
        "to": "agdx.to",
        "corr": "agdx.corr",
        "mem": "agdx.mem.ns",
    }
    out = {"gen_ai.conversation.id": ("string", id_text(session).encode())}
    out.update({names[name]: ("string", value.encode()) for name, value in more.items()})
    return out


def plain(session: bytes, payload: bytes = b"{}", **more: str) -> Record:
    """A record without an envelope."""
    return payload, headers(session, **more)


def enveloped(
    session: bytes, kind: str, operation: str | None = None, body: Any = None, **more: Any
) -> Record:
    """An envelope by `planner`; a body that is not bytes is written as CBOR."""
    fields: dict[str, Any] = {
        "kind": kind,
        "record": session_id(99),
        "conversation": session,
        "source": more.pop("source", "planner"),
    }
    state = more.pop("state", None)
    if state is not None:
        fields["task_state"] = STATES[state]
    if operation is not None:
        fields["operation"] = operation
    fields.update(more)
    if body is not None:
        fields["body"] = body if isinstance(body, bytes) else cbor.dumps(body)
    return cbor.dumps(fields), {**headers(session), "agdx.av": ("u32", b"\x01\0\0\0")}


def status(session: bytes, state: str, body: Any = None, **more: Any) -> Record:
    """A lifecycle status of a session."""
    return enveloped(session, "status", "session", body if body is not None else {}, state=state, **more)


def start(session: bytes, **fields: Any) -> Record:
    """The working status that starts a session."""
    sdk = {"language": "python", "version": "0.8.2"}
    return status(session, "working", {"agent": "planner", "sdk": sdk, **fields})
