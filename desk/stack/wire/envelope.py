"""Agent envelopes as session timelines see them: the fields that matter and the word each is shown by.

    envelope {kind, record, conversation, source, parent?, root?, target?, correlation?, cause_at?, operation?,
              task_state?, tool?, usage?, finish_reason?, metadata?, body?, ...}
    kind     status command event response error chunk
    status with operation `session`   task_state 1 submitted, 2 working (started when its body names an agent or
                                      an SDK, else resumed), 10 paused, 4 completed, 5 canceled, 6 failed, 7 rejected

The words are pinned by the wire contract's dispatch cases.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from desk.stack.wire import cbor
from desk.stack.wire.shape import BYTES, ID16, MAP, TEXT, U32, Shape, ShapeError, check, optional

CONTROL_TOPIC, HEARTBEATS_TOPIC, DLQ_TOPIC = "agent.control", "agent.heartbeats", "agent.dlq"
LANE_TOPIC, JOURNAL_TOPICS = "agent.sessions", frozenset({"agent.workflow_journal", "agent.journal"})
REGISTRY_TOPIC = "agent.registry"

CONTROL_OPERATIONS = frozenset({"session_pause", "session_resume", "session_cancel", "force_cancel"})
KINDS = frozenset({"status", "command", "event", "response", "error", "chunk"})
_MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
_STATES = MappingProxyType(
    {
        1: "session.submitted",
        4: "session.completed",
        5: "session.canceled",
        6: "session.failed",
        7: "session.failed",
        10: "session.paused",
    }
)
_EVENTS = MappingProxyType(
    {
        "state_delta": "state.updated",
        "state_snapshot": "state.updated",
        "context_assembled": "context.assembled",
        "context_compacted": "context.compacted",
        "context_retrieved": "context.retrieved",
        "policy_decision": "policy.decision",
        "session_parked": "session.parked",
        "session_unparked": "session.unparked",
    }
)
_MEMORY = MappingProxyType(
    {"Item": "memory.created", "Forget": "memory.forgotten", "Feedback": "memory.feedback"}
)
_SHAPE: Shape = {
    "kind": TEXT,
    "conversation": ID16,
    "source": TEXT,
    "parent": optional(ID16),
    "root": optional(ID16),
    "correlation": optional(ID16),
    "cause_at": optional(BYTES),
    "operation": optional(TEXT),
    "task_state": optional(U32),
    "tool": optional(TEXT),
    "usage": optional(MAP),
    "finish_reason": optional(TEXT),
    "metadata": optional(MAP),
    "body": optional(BYTES),
}


def envelope(payload: bytes) -> dict[str, Any] | None:
    """An envelope's fields, or None when the payload is none."""
    try:
        fields = check(cbor.loads(payload), _SHAPE)
    except (cbor.DecodeError, ShapeError):
        return None
    return fields if fields["kind"] in KINDS else None


def body_map(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope's body as a map; empty when it is none."""
    try:
        body = cbor.loads(fields.get("body", b""))
    except cbor.DecodeError:
        return {}
    return body if type(body) is dict else {}


def display(fields: Mapping[str, Any], topic: str) -> str:
    """The word a timeline shows an envelope by, read from the topic of that name."""
    kind, operation = fields["kind"], fields.get("operation", "")
    if kind == "status":
        return _status(fields, operation, topic)
    if kind == "command":
        return _command(fields, operation, topic)
    if kind == "event":
        return "user.message" if _by_user(fields) else _EVENTS.get(operation, "agent.message")
    if kind == "chunk":
        return "model.stream" if operation in ("chat", "reasoning") else "agent.message"
    if operation == "execute_tool":
        return "tool.result"
    if kind == "error":
        return "error"
    return "model.response" if operation in _MODEL_OPERATIONS else "agent.message"


def memory_display(variant: str) -> str:
    """The word for a memory record."""
    return _MEMORY.get(variant, "undecodable")


def _status(fields: Mapping[str, Any], operation: str, topic: str) -> str:
    if operation == "progress" and topic == HEARTBEATS_TOPIC:
        return "session.heartbeat"
    if operation != "session":
        return "task.status" if operation == "task" else "agent.message"
    state = fields.get("task_state")
    if state == 2:
        body = body_map(fields)
        return "session.started" if "agent" in body or "sdk" in body else "session.resumed"
    return _STATES.get(state, "task.status")


def _command(fields: Mapping[str, Any], operation: str, topic: str) -> str:
    if operation in CONTROL_OPERATIONS:
        return "session.control" if topic == CONTROL_TOPIC else "unauthorized_control"
    if _by_user(fields):
        return "user.message"
    if operation in _MODEL_OPERATIONS:
        return "model.request"
    return {"execute_tool": "tool.call", "invoke_agent": "agent.handoff"}.get(operation, "agent.message")


def _by_user(fields: Mapping[str, Any]) -> bool:
    return (fields.get("metadata") or {}).get("role") == "user"
