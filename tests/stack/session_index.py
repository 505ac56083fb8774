"""A bench with a registered session source: publish records, ask the seven reads, decoded."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import xxhash

from desk.stack.wire import agdx, cbor
from desk.stack.wire.records import id_text
from tests.stack.agents import enveloped, session_id
from tests.stack.banding import Bench
from tests.stack.sdist import fixture

STREAM, LANE = "agents", "agent.sessions"
ONE, TWO, THREE = session_id(2), session_id(3), session_id(4)


def registered(folder: Path) -> Iterator[Bench]:
    """The bench, closed at the end."""
    bench = Bench(folder)
    bench.log.ensure(STREAM, LANE, 4)
    for topic in ("agent.control", "agent.heartbeats", "agent.memory", "agent.dlq", "agent.registry"):
        bench.log.ensure(STREAM, topic, 2)
    register(bench)
    yield bench
    bench.close()


def control(bench, command):
    reply = cbor.loads(
        bench.send(agdx.CONTROL_PUBLISH, bench.frame({"v": 1, "timestamp_micros": 0, "command": command}))
    )
    return cbor.loads(reply["reply"]) if "reply" in reply else reply


def register(bench, topics="All"):
    reply = control(bench, {"RegisterSessionSource": {"stream": STREAM, "topics": topics}})
    assert reply["code"] == "ok", reply


def write(bench, *records, topic=LANE, partition=1):
    bench.clock.forward(0.001)
    return bench.publish(STREAM, topic, records, partition=partition)


def ask(bench, code, **request):
    return bench.ok(code, {"stream": STREAM, **request})


def info(bench, session=ONE):
    return ask(bench, agdx.SESSION_GET, id=session)["Info"]


def items(bench, **filters):
    page = ask(bench, agdx.SESSION_LIST, limit=0, want_total=False, **filters)["Page"]
    return [item["id"] for item in page["items"]]


def events(bench, session=ONE, **more):
    request = {"id": session, "limit": 0, "fixed_frontier": False, **more}
    return ask(bench, agdx.SESSION_EVENTS, **request)["Events"]


def words(bench, session=ONE):
    return [event["display"] for event in events(bench, session)["items"]]


def links(bench, session=ONE, **more):
    found = ask(bench, agdx.SESSION_LINKS, id=session, **more)["Links"]["links"]
    return [(link["surface"], link["resource"], link["item"], link["relation"]) for link in found]


def changes(bench, after=0, **more):
    return ask(bench, agdx.SESSION_CHANGES, after=after, limit=0, **more)["Changes"]


def control_partition(session, partitions=2):
    return xxhash.xxh32_intdigest(id_text(session).encode()) % partitions


def delta(base, *operations, op_id="op"):
    return enveloped(
        ONE, "event", "state_delta", {"base_revision": base, "patch": list(operations), "op_id": op_id}
    )


def put(path, value):
    return {"op": "add", "path": path, "value": value}


def digest(document):
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()


def state(bench):
    return ask(bench, agdx.SESSION_STATE, id=ONE, history_limit=0)["State"]


def golden(name):
    return cbor.loads(fixture(f"session_reply_{name}.bin"))["Ok"]
