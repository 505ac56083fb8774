"""The word a session timeline shows a record by: every dispatch case of the wire contract."""

import json

from desk.stack.wire import cbor, envelope
from tests.stack.agents import STATES, session_id
from tests.stack.sdist import sdist

BODIES = {"start": {"agent": "x", "sdk": {}}, "transition": {"actor": "x"}, "end": {"reason": "done"}}
SESSION = session_id(1)


def test_every_dispatch_case_of_an_envelope():
    cases = json.loads((sdist() / "wire" / "fixtures" / "dispatch_cases.json").read_text())["cases"]
    tried = 0
    for case in cases:
        record = case["record"]
        if "kind" not in record:
            continue
        fields = {"kind": record["kind"], "conversation": SESSION, "source": "x"}
        if "operation" in record:
            fields["operation"] = record["operation"]
        if "task_state" in record:
            fields["task_state"] = STATES[record["task_state"]]
        if "role" in record:
            fields["metadata"] = {"role": record["role"]}
        fields["body"] = cbor.dumps(BODIES.get(record.get("body"), {}))
        decoded = envelope.envelope(cbor.dumps(fields))
        assert decoded is not None, case["name"]
        assert envelope.display(decoded, case["topic"]) == case["display"], case["name"]
        tried += 1
    assert tried > 25


def test_memory_words():
    assert [envelope.memory_display(v) for v in ("Item", "Forget", "Feedback", "?")] == [
        "memory.created",
        "memory.forgotten",
        "memory.feedback",
        "undecodable",
    ]


def test_rubbish_is_no_envelope():
    for payload in (b"", b"\xff", cbor.dumps([]), cbor.dumps({"kind": "command"}), cbor.dumps({"kind": "?"})):
        assert envelope.envelope(payload) is None
    golden = sorted((sdist() / "wire" / "fixtures").glob("agent_*.bin"))
    decoded = [f.name for f in golden if envelope.envelope(f.read_bytes())]
    assert "agent_command.bin" in decoded and "agent_status_session.bin" in decoded
