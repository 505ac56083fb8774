"""Damaged requests on every command: a typed refusal or an answer, never an exception, never a change."""

import inspect

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desk.stack.managed.band import Band
from desk.stack.managed.served import SURFACES
from desk.stack.wire import agdx, cbor
from tests.stack.agents import enveloped, session_id
from tests.stack.banding import CALLER, Bench
from tests.stack.sdist import fixture

GOLDEN = {
    "kv_get_barriered": agdx.KV_GET,
    "kv_set_session": agdx.KV_SET,
    "kv_scan": agdx.KV_SCAN,
    "kv_delete_session": agdx.KV_DELETE,
    "kv_cas_session": agdx.KV_CAS,
    "kv_cas_fenced": agdx.KV_CAS_FENCED,
    "kv_patch_session": agdx.KV_PATCH,
    "kv_lease": agdx.KV_LEASE,
    "kv_lease_renew": agdx.KV_LEASE_RENEW,
    "kv_release": agdx.KV_RELEASE,
    "kv_copy": agdx.KV_COPY,
    "kv_move": agdx.KV_MOVE,
    "kv_namespaces": agdx.KV_NAMESPACES,
    "fork_create": agdx.FORK_CREATE,
    "fork_put": agdx.FORK_PUT,
    "graph_upsert": agdx.GRAPH_UPSERT,
    "graph_query": agdx.GRAPH_QUERY,
    "graph_neighbors": agdx.GRAPH_NEIGHBORS,
    "session_get": agdx.SESSION_GET,
    "session_list": agdx.SESSION_LIST,
    "session_events": agdx.SESSION_EVENTS,
    "session_state": agdx.SESSION_STATE,
    "session_links": agdx.SESSION_LINKS,
    "session_sources": agdx.SESSION_SOURCES,
    "session_changes": agdx.SESSION_CHANGES,
    "control_register_projection": agdx.CONTROL_PUBLISH,
    "control_apply_binding": agdx.CONTROL_PUBLISH,
    "control_register_schema_json": agdx.CONTROL_PUBLISH,
    "control_register_session_source_named": agdx.CONTROL_PUBLISH,
    "control_remove_session_source": agdx.CONTROL_PUBLISH,
    "register_schema_managed": agdx.REGISTER_SCHEMA,
    "decode_record": agdx.DECODE_RECORD,
    "client_metadata_query": agdx.LIST_CLIENT_METADATA,
    "query_envelope": agdx.QUERY,
    "query_envelope_aggregate": agdx.QUERY,
    "query_page": agdx.QUERY_PAGE,
    "query_status": agdx.QUERY_STATUS,
    "query_cancel": agdx.QUERY_CANCEL,
    "batch_request": agdx.BATCH,
}
SERVED = sorted(
    {
        code
        for surface in SURFACES
        for kind in (surface.mutations, surface.barrier_reads, surface.plain)
        for code in kind
    }
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70) | st.sampled_from([2**63, 2**64 - 1]),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=20),
    st.just([]),
    st.just({}),
    st.just(["x", None]),
    st.just({"kind": "what"}),
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("band"))
    bench.log.ensure("agents", "agent.sessions", 1)
    yield bench
    bench.close()


def register(bench):
    command = {"RegisterSessionSource": {"stream": "agents", "topics": "All"}}
    bench.send(agdx.CONTROL_PUBLISH, bench.frame({"v": 1, "timestamp_micros": 0, "command": command}))


def send(bench, code, payload):
    """As a client would frame it; a reply that comes later is closed, what it does is the query room's."""
    body = bench.frame(payload) if code in agdx.MUTATION_CODES else payload
    if code in Band.MUTATIONS:
        with bench.store.transaction():
            reply = bench.band.handle(code, body, CALLER)
    else:
        reply = bench.band.handle(code, body, CALLER)
    if inspect.iscoroutine(reply):
        reply.close()
        return None
    return cbor.loads(reply)


def places(value, path=()):
    """Every place inside a request where something can be changed or taken away."""
    found = []
    if isinstance(value, dict):
        for key, item in value.items():
            found += [(*path, key), *places(item, (*path, key))]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += [(*path, index), *places(item, (*path, index))]
    return found


def damaged(request, path, value, take_away):
    *above, last = path
    holder = request
    for step in above:
        holder = holder[step]
    if take_away:
        del holder[last]
    else:
        holder[last] = value
    return request


def is_an_answer(reply):
    return reply is None or set(reply) in (
        {"Ok"},
        {"Err"},
        {"code", "message"},
        {"v", "frontier", "reply"},
        {"clients"},
    )


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_golden_request_with_one_thing_wrong_is_answered(bench, data):
    register(bench)
    name = data.draw(st.sampled_from(sorted(GOLDEN)))
    request = cbor.loads(fixture(f"{name}.bin"))
    path = data.draw(st.sampled_from(places(request)))
    changed = damaged(request, path, data.draw(ODD), data.draw(st.booleans()))
    assert is_an_answer(send(bench, GOLDEN[name], cbor.dumps(changed))), name


@settings(max_examples=200, deadline=None)
@given(code=st.sampled_from(SERVED), payload=st.binary(max_size=60) | ODD.map(cbor.dumps))
def test_anything_at_all_is_answered(bench, code, payload):
    assert is_an_answer(send(bench, code, payload))


RECORDS = {
    "agent_command": None,
    "agent_status_session": None,
    "memory_item_origin": None,
    "agent_session_start": ("status", "session", "working"),
    "agent_session_end": ("status", "session", "failed"),
    "state_delta": ("event", "state_delta", None),
    "state_snapshot": ("event", "state_snapshot", None),
    "context_retrieval": ("event", "context_retrieved", None),
    "session_heartbeat": ("status", "progress", None),
}
CONVERSATION = session_id(7)
HEADERS = (
    "agdx.av",
    "agdx.cost",
    "agdx.mem.ns",
    "agdx.parent_conv",
    "gen_ai.conversation.id",
    "gen_ai.usage.input_tokens",
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_record_on_a_registered_stream_is_folded_or_passed_over(bench, data):
    register(bench)
    name = data.draw(st.sampled_from(sorted(RECORDS)))
    body = cbor.loads(fixture(f"{name}.bin"))
    body = damaged(body, data.draw(st.sampled_from(places(body))), data.draw(ODD), data.draw(st.booleans()))
    if RECORDS[name] is None:
        payload, headers = cbor.dumps(body), {}
    else:
        kind, operation, state = RECORDS[name]
        payload, headers = enveloped(CONVERSATION, kind, operation, body, state=state)
    kinds = st.sampled_from(["string", "u32", "u128", "raw", "f64"])
    names = st.sampled_from([*HEADERS])
    values = st.binary(max_size=30) | st.just(b"01KWM3K3XEP3NP5TN850J17YBP")
    headers = {**headers, **data.draw(st.dictionaries(names, st.tuples(kinds, values), max_size=2))}
    topic = data.draw(st.sampled_from(["agent.sessions", "agent.heartbeats", "agent.control", "agent.dlq"]))
    bench.log.ensure("agents", topic, 1)
    bench.publish("agents", topic, [(payload, headers)])
    reply = send(bench, agdx.SESSION_LIST, cbor.dumps({"stream": "agents", "limit": 0, "want_total": True}))
    assert list(reply) == ["Ok"]
