"""The band's own duties: frames, operation identity, positions, batches, presence, hello, refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.stack.engine import Caller
from desk.stack.managed import outcomes
from desk.stack.wire import agdx, cbor
from desk.stack.wire.shape import ShapeError
from tests.stack.banding import CALLER, Bench
from tests.stack.sdist import fixture

SET = {"v": 1, "namespace": "n", "key": b"k", "value": b"v"}
GET = {"v": 1, "namespace": "n", "key": b"k"}


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def cas(expect="Absent"):
    return {**SET, "expect": expect}


def batch(*ops):
    return {"v": 1, "ops": [{"code": code, "payload": cbor.dumps(request)} for code, request in ops]}


def slots(bench, *ops):
    return [cbor.loads(slot) for slot in cbor.loads(bench.mutate(agdx.BATCH, batch(*ops)))["results"]]


# ---- operation identity


def test_an_identical_frame_is_answered_with_the_recorded_reply_also_after_a_restart(bench):
    frame = bench.frame(cas(), operation_id=2**127 + 5)
    first = bench.send(agdx.KV_CAS, frame)
    assert cbor.loads(cbor.loads(first)["reply"]) == {"Ok": {"Committed": {"version": 1}}}
    assert bench.send(agdx.KV_CAS, frame) == first
    bench.restart()
    assert cbor.loads(bench.send(agdx.KV_CAS, frame))["reply"] == cbor.loads(first)["reply"]
    assert bench.ok(agdx.KV_GET, GET)["Value"]["version"] == 1


def test_a_refusal_is_an_outcome_too(bench):
    bench.ok(agdx.KV_SET, SET)
    frame = bench.frame(cas(), operation_id=99)
    first = bench.send(agdx.KV_CAS, frame)
    bench.ok(agdx.KV_DELETE, GET)
    assert cbor.loads(bench.send(agdx.KV_CAS, frame))["reply"] == cbor.loads(first)["reply"]


def test_outcomes_are_forgotten_after_a_while_and_only_then(bench):
    for number in range(1, 11):
        bench.send(agdx.KV_SET, bench.frame(SET, operation_id=number))
    bench.clock.forward(60)
    kept = bench.store.db.execute("SELECT count(*) FROM outcome").get
    assert kept == 10
    bench.clock.forward(outcomes.KEPT_US / 1e6)
    for number in range(100, 100 + 2 * outcomes.PRUNE_EVERY):
        bench.send(agdx.KV_SET, bench.frame(SET, operation_id=number))
    oldest = bench.store.db.execute("SELECT min(at_us) FROM outcome").get
    assert oldest == bench.clock.us


@pytest.mark.parametrize(
    "body",
    [
        cbor.dumps(SET),
        cbor.dumps({"v": 1, "operation_id": 0, "payload": cbor.dumps(SET)}),
        cbor.dumps({"v": 2, "operation_id": 1, "payload": cbor.dumps(SET)}),
        cbor.dumps({"v": 1, "operation_id": -1, "payload": cbor.dumps(SET)}),
        cbor.dumps({"v": 1, "operation_id": 1 << 128, "payload": cbor.dumps(SET)}),
        cbor.dumps({"v": 1, "operation_id": 1, "payload": b"\xff"}),
        cbor.dumps({"v": 1, "operation_id": 1, "payload": cbor.dumps({**SET, "key": "text"})}),
        b"",
        b"\xff\xff",
    ],
)
def test_a_mutation_without_a_proper_frame_is_an_invalid_argument(bench, body):
    assert cbor.loads(bench.send(agdx.KV_SET, body))["code"] == "invalid_argument"
    assert bench.ok(agdx.KV_GET, GET) == {"Value": None}


# ---- positions


def test_positions_count_mutations_of_a_surface_and_survive_a_restart(bench):
    def position():
        return cbor.loads(bench.send(agdx.KV_SET, bench.frame(SET)))["frontier"]["kv"]

    first, second = position(), position()
    assert second == {**first, "offset": first["offset"] + 1}
    bench.restart()
    third = position()
    assert third == {**first, "offset": third["offset"]} and third["offset"] > second["offset"]
    assert third["offset"] <= second["offset"] + outcomes.RESERVED + 1


def test_a_position_seen_before_a_restart_is_served_after_it(bench):
    frontier = cbor.loads(bench.send(agdx.KV_SET, bench.frame(SET)))["frontier"]["kv"]
    bench.restart()
    assert bench.read(agdx.KV_GET, GET, min_position=frontier)


def test_heads_are_reserved_ahead_again_before_they_run_out(bench):
    first = cbor.loads(bench.send(agdx.KV_SET, bench.frame(SET)))["frontier"]["kv"]["offset"]
    for _ in range(outcomes.RESERVED + 1):
        last = cbor.loads(bench.send(agdx.KV_SET, bench.frame(SET)))["frontier"]["kv"]["offset"]
    assert last == first + outcomes.RESERVED + 1
    bench.restart()
    assert cbor.loads(bench.send(agdx.KV_SET, bench.frame(SET)))["frontier"]["kv"]["offset"] > last


def test_a_read_below_the_required_position_is_stale_and_never_older_state(bench):
    frontier = cbor.loads(bench.send(agdx.KV_SET, bench.frame(SET)))["frontier"]["kv"]
    body = {"v": 1, "read": cbor.dumps(GET)}
    served = bench.send(agdx.KV_GET, cbor.dumps({**body, "min_position": frontier, "log_head": True}))
    assert cbor.loads(served)["frontier"] == {"kv": frontier}
    for change in ({"offset": frontier["offset"] + 1}, {"topic_generation": 1}):
        wanted = cbor.dumps({**body, "min_position": {**frontier, **change}})
        assert cbor.loads(bench.send(agdx.KV_GET, wanted))["code"] == "stale"


def test_a_bare_read_is_answered_bare(bench):
    bench.ok(agdx.KV_SET, SET)
    assert bench.plain(agdx.KV_GET, GET)["Ok"]["Value"]["value"] == b"v"


def test_the_golden_frames_are_understood(bench):
    frame = agdx.mutation_frame(fixture("managed_request.bin"))
    assert frame.operation_id and frame.payload
    read = agdx.read_frame(fixture("managed_read.bin"))
    assert isinstance(read, agdx.ReadFrame) and read.read
    golden = cbor.loads(fixture("managed_reply.bin"))
    assert agdx.reply_frame(golden["reply"], cbor.dumps(golden["frontier"])) == fixture("managed_reply.bin")


@pytest.mark.parametrize("size", [0, 23, 24, 255, 256, 65_535, 65_536])
def test_a_reply_frame_is_what_the_encoder_would_write(size):
    frontier = {"kv": {"topic_generation": 1, "partition": 0, "offset": 2}}
    frame = agdx.reply_frame(bytes(size), cbor.dumps(frontier))
    assert frame == cbor.dumps({"v": 1, "frontier": frontier, "reply": bytes(size)})


NUMBERS = st.sampled_from([1, 2**63, 2**64, 2**120, 2**121 + 5, 2**128 - 1])


@given(number=NUMBERS, payload=st.binary(max_size=300), cut=st.integers(0, 3), more=st.binary(max_size=2))
def test_the_short_way_through_a_frame_reads_what_the_decoder_reads(number, payload, cut, more):
    framed = cbor.dumps({"v": 1, "operation_id": number, "payload": payload})
    assert agdx.mutation_frame(framed) == (number, payload)
    read = cbor.dumps({"v": 1, "read": payload})
    assert agdx.read_frame(read) == agdx.ReadFrame(payload)
    position = {"topic_generation": number % 2**64, "partition": 0, "offset": 7}
    ahead = {"v": 1, "read": payload, "min_position": position, "log_head": True, "min_sessions": [{"a": 1}]}
    for fields in (ahead, dict(reversed(ahead.items()))):
        assert agdx.read_frame(cbor.dumps(fields)) == (payload, position, True, ({"a": 1},))
    for body, decode in ((framed, agdx.mutation_frame), (read, agdx.read_frame)):
        if cut or more:
            with pytest.raises((cbor.DecodeError, ShapeError)):
                decode(body[: len(body) - cut] + more * (not cut))


# ---- batches


def test_a_batch_answers_bare_replies_in_order_and_a_failing_item_fails_alone(bench):
    assert slots(
        bench,
        (agdx.KV_SET, SET),
        (agdx.KV_GET, GET),
        (agdx.KV_CAS, cas()),
        (agdx.CHECKPOINT, {}),
        (agdx.KV_GET, {"v": 1}),
        (agdx.KV_EXISTS, GET),
    ) == [
        {"Ok": "Written"},
        {"Ok": {"Value": {"key": b"k", "value": b"v", "version": 1}}},
        {"Err": {"VersionConflict": {"current": 1}}},
        {"code": "unsupported", "message": f"command {agdx.CHECKPOINT} is not served here"},
        {"code": "invalid_argument", "message": "missing field `namespace`"},
        {"Ok": {"Metadata": {"version": 1, "size_bytes": 1}}},
    ]
    assert list(cbor.loads(fixture("batch_reply.bin"))) == ["results"]


def test_a_repeated_batch_applies_nothing_twice(bench):
    frame = bench.frame(batch((agdx.KV_SET, SET)), operation_id=7)
    assert bench.send(agdx.BATCH, frame) == bench.send(agdx.BATCH, frame)
    assert bench.ok(agdx.KV_GET, GET)["Value"]["version"] == 1


def test_an_item_may_carry_its_own_identity(bench):
    own = cbor.loads(bench.frame(SET, operation_id=55))
    slots(bench, (agdx.KV_SET, own))
    assert slots(bench, (agdx.KV_SET, own)) == [{"Ok": "Written"}]
    bench.send(agdx.KV_SET, bench.frame(SET, operation_id=55))
    assert bench.ok(agdx.KV_GET, GET)["Value"]["version"] == 1


def test_an_item_may_even_carry_the_identity_of_its_batch(bench):
    own = cbor.loads(bench.frame(SET, operation_id=77))
    frame = bench.frame(batch((agdx.KV_SET, own)), operation_id=77)
    first = bench.send(agdx.BATCH, frame)
    assert bench.send(agdx.BATCH, frame) == first
    assert bench.ok(agdx.KV_GET, GET)["Value"]["version"] == 1


def test_batches_have_bounds(bench):
    nested = cbor.loads(bench.send(agdx.BATCH, bench.frame(batch((agdx.BATCH, {})))))
    assert nested["code"] == "invalid_argument"
    many = cbor.loads(bench.send(agdx.BATCH, bench.frame(batch(*[(agdx.KV_GET, GET)] * 65))))
    assert many["code"] == "too_large"
    skewed = cbor.loads(bench.send(agdx.BATCH, bench.frame({"v": 2, "ops": []})))
    assert skewed["code"] == "version_skew"


def test_replies_that_outgrow_a_frame_are_refused_slot_by_slot(bench):
    bench.ok(agdx.KV_SET, {**SET, "value": bytes(8 << 20)})
    reply = bench.mutate(agdx.BATCH, batch(*[(agdx.KV_GET, GET)] * 9))
    assert len(reply) < agdx.MAX_FRAME_BYTES
    answers = [cbor.loads(slot) for slot in cbor.loads(reply)["results"]]
    assert ["Ok" in answer for answer in answers] == [True] * 7 + [False] * 2
    assert answers[-1]["code"] == "too_large"


# ---- presence


def advertise(bench, client, user, address, body):
    caller = Caller(client, user, address)
    bench.send(agdx.HELLO, b"", caller)
    assert bench.send(agdx.SET_CLIENT_METADATA, body, caller) == b""


def test_client_metadata_has_the_layout_of_the_golden_page(bench):
    golden = cbor.loads(fixture("client_metadata_list.bin"))
    planner, other = golden["clients"]
    planner["consumer_groups_count"], other["transport"] = 0, 1  # what this stack counts, what it speaks
    golden["clients"][1] = {"client_id": other["client_id"], "user_id": 1, **other}
    advertise(bench, planner["client_id"], planner["user_id"], planner["address"], planner["metadata"])
    advertise(bench, other["client_id"], 1, other["address"], b"")
    advertise(bench, other["client_id"] + 1, 1, "x", b"x")
    caller = Caller(planner["client_id"], planner["user_id"], planner["address"])
    page = bench.send(agdx.LIST_CLIENT_METADATA, cbor.dumps({"v": 1, "limit": 2}), caller)
    assert page == cbor.dumps(golden)


def test_client_metadata_pages_filters_and_ends_with_its_connection(bench):
    for client in (5, 2, 9):
        advertise(bench, client, client % 2, "a:1", b"m")
    advertise(bench, 3, 1, "a:1", b"m")
    advertise(bench, 3, 1, "a:1", b"")

    def ids(**query):
        page = bench.plain(agdx.LIST_CLIENT_METADATA, {"v": 1, "limit": 100, **query}, Caller(9, 1, "a:1"))
        return [client["client_id"] for client in page["clients"]], page.get("next_cursor")

    assert ids() == ([2, 3, 5, 9], None)
    assert ids(limit=2) == ([2, 3], 3)
    assert ids(after_client_id=3) == ([5, 9], None)
    assert ids(with_metadata_only=True) == ([2, 5, 9], None)
    assert ids(user_id=0) == ([2], None)
    bench.band.disconnected(5)
    assert ids() == ([2, 3, 9], None)


def test_metadata_has_a_bound(bench):
    body = bytes((64 << 10) + 1)
    assert cbor.loads(bench.send(agdx.SET_CLIENT_METADATA, body))["code"] == "too_large"


# ---- hello and refusals


def test_hello_has_the_shape_of_the_golden_announce(bench):
    announced = bench.plain(agdx.HELLO, b"")
    golden = cbor.loads(fixture("backend_announce.bin"))
    ours, theirs = announced["backends"][0], golden["backends"][0]
    assert [key for key in theirs if key in ours] == list(ours)
    assert set(theirs) - set(ours) <= {"query"}
    for block in ("readiness", "schema", "maintenance", "limits"):
        assert list(ours[block]) == list(theirs[block])
    topology = cbor.loads(fixture("backend_announce_topology.bin"))["topology"]
    assert list(announced["topology"]) == list(topology)


def test_hello_announces_what_the_surfaces_present_serve_and_nothing_else(bench):
    versions = bench.plain(agdx.HELLO, b"")["versions"]
    served = {name for surface in bench.band.surfaces.values() for name in surface.versions}
    assert {name for name, version in versions.items() if version and name != "features"} == served
    never = agdx.Feature.AUTHZ | agdx.Feature.DESTINATIONS | agdx.Feature.CONSUMER_FILTERS
    never |= agdx.Feature.GROUP_POLICY_READS | agdx.Feature.KEYWORD_SEARCH | agdx.Feature.STREAM_TENANCY
    assert not versions["features"] & never


def test_what_nobody_serves_is_unsupported(bench):
    for code in (
        agdx.BACKEND_HELLO,
        agdx.CHECKPOINT,
        agdx.BASE + 100,
        agdx.BASE + 700,
        agdx.BASE + 800,
        1_999_999,
    ):
        assert bench.plain(code, {})["code"] == "unsupported", code


RUBBISH = [b"", b"\x00", b"\xff", b"\xa0", b"\x80", cbor.dumps({"v": 1, "read": b"\xff"})]


def test_rubbish_is_an_invalid_argument_on_every_code(bench):
    reads = {agdx.KV_GET, agdx.KV_SCAN, agdx.LIST_CLIENT_METADATA, agdx.GRAPH_QUERY, agdx.SESSION_LIST}
    for code in sorted((agdx.MUTATION_CODES | reads) - {agdx.CHECKPOINT}):
        for body in RUBBISH:
            assert bench.plain(code, body)["code"] == "invalid_argument", (code, body)


def test_a_handler_that_fails_leaves_nothing_behind(bench):
    frame = bench.frame({**SET, "namespace": ""})
    bench.send(agdx.KV_SET, frame)
    assert bench.store.db.execute("SELECT count(*) FROM kv").get == 0
    assert bench.store.db.execute("SELECT count(*) FROM outcome").get == 1
    assert CALLER.client_id == 1
