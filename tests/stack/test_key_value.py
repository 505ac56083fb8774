"""Key-value operations: versions, expiry, scans in byte order, preconditions, and the golden reply bytes."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desk.stack.wire import agdx, cbor
from tests.stack.banding import NOW_US, Bench
from tests.stack.sdist import fixture

SESSION = bytes.fromhex("0193e5a3c4f47000800000000000002a")


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def at(key=b"hits", namespace="counters", **more):
    return {"v": 1, "namespace": namespace, "key": key, **more}


def within(namespace="counters", **more):
    return {"v": 1, "namespace": namespace, "limit": 0, **more}


def keys(bench, **bounds):
    return [entry["key"] for entry in bench.ok(agdx.KV_SCAN, within(**bounds))["Page"]["entries"]]


def put(bench, key=b"hits", value=b"v", namespace="counters", **more):
    return bench.ok(agdx.KV_SET, at(key, namespace, value=value, **more))


def test_a_value_comes_back_with_a_version_that_counts_writes(bench):
    assert bench.ok(agdx.KV_GET, at()) == {"Value": None}
    assert put(bench, value=b"one") == "Written"
    put(bench, value=b"two")
    assert bench.ok(agdx.KV_GET, at()) == {"Value": {"key": b"hits", "value": b"two", "version": 2}}
    assert bench.ok(agdx.KV_GET, at(if_none_match=2)) == "NotModified"
    assert bench.ok(agdx.KV_EXISTS, at()) == {"Metadata": {"version": 2, "size_bytes": 3}}


def test_expiry_ends_a_life_and_the_next_begins_at_version_one(bench):
    put(bench, expires_at_micros=NOW_US + 1_000_000)
    put(bench, expires_at_micros=NOW_US + 1_000_000)
    assert bench.ok(agdx.KV_EXISTS, at())["Metadata"]["expires_at_micros"] == NOW_US + 1_000_000
    bench.clock.forward(1)
    assert bench.ok(agdx.KV_GET, at()) == {"Value": None}
    assert bench.ok(agdx.KV_NAMESPACES, {"v": 1}) == {"Namespaces": []}
    assert bench.err(agdx.KV_EXPIRE, at()) == "NotFound"
    assert bench.ok(agdx.KV_DELETE, at()) == {"Deleted": False}
    assert bench.ok(agdx.KV_CAS, at(value=b"v", expect="Absent")) == {"Committed": {"version": 1}}


def test_expire_moves_or_clears_the_end_and_keeps_the_version(bench):
    put(bench)
    later = NOW_US + 5_000_000
    assert bench.ok(agdx.KV_EXPIRE, at(expires_at_micros=later)) == {"Versioned": {"version": 1}}
    assert bench.ok(agdx.KV_GET, at())["Value"]["expires_at_micros"] == later
    assert bench.ok(agdx.KV_EXPIRE, at()) == {"Versioned": {"version": 1}}
    assert "expires_at_micros" not in bench.ok(agdx.KV_GET, at())["Value"]


def test_an_expiry_beyond_what_the_file_can_hold_never_comes(bench):
    put(bench, expires_at_micros=(1 << 64) - 1)
    assert bench.ok(agdx.KV_GET, at())["Value"]["value"] == b"v"


def test_compare_and_swap_answers_the_golden_bytes(bench):
    for _ in range(7):
        put(bench, value=b"x")
    absent = dict(cbor.loads(fixture("kv_cas.bin")), expect="Absent")
    assert bench.mutate(agdx.KV_CAS, absent) == fixture("kv_reply_version_conflict.bin")
    assert bench.mutate(agdx.KV_CAS, fixture("kv_cas.bin")) == fixture("kv_reply_committed.bin")
    assert bench.err(agdx.KV_CAS, fixture("kv_cas.bin")) == {"VersionConflict": {"current": 8}}
    assert bench.err(agdx.KV_CAS, at(b"none", value=b"x", expect={"Match": 1})) == {
        "VersionConflict": {"current": None}
    }


def test_a_conditional_delete_needs_the_version(bench):
    put(bench)
    assert bench.err(agdx.KV_DELETE, at(if_match=2)) == {"VersionConflict": {"current": 1}}
    assert bench.ok(agdx.KV_DELETE, at(if_match=1)) == {"Deleted": True}
    assert bench.err(agdx.KV_DELETE, at(if_match=1)) == {"VersionConflict": {"current": None}}


def test_a_merge_patch_changes_json_in_place(bench):
    put(bench, value=b'{"a":1,"b":{"c":2,"d":3}}', expires_at_micros=NOW_US + 9)
    patch = json.dumps({"b": {"c": None, "e": "é"}, "f": [1]}).encode()
    assert bench.ok(agdx.KV_PATCH, at(patch=patch, if_match=1)) == {"Versioned": {"version": 2}}
    entry = bench.ok(agdx.KV_GET, at())["Value"]
    assert json.loads(entry["value"]) == {"a": 1, "b": {"d": 3, "e": "é"}, "f": [1]}
    assert entry["expires_at_micros"] == NOW_US + 9
    assert bench.err(agdx.KV_PATCH, at(patch=patch, if_match=1)) == {"VersionConflict": {"current": 2}}
    for patch_bytes in (b"no json", b'{"a":NaN}', b'{"a":"\\ud800"}', b"[" * 5000 + b"]" * 5000):
        assert list(bench.err(agdx.KV_PATCH, at(patch=patch_bytes))) == ["Backend"]
    assert bench.err(agdx.KV_PATCH, at(b"none", patch=patch)) == "NotFound"


def test_copy_and_move_overwrite_in_one_step_and_keep_the_expiry(bench):
    put(bench, value=b"v", expires_at_micros=NOW_US + 9)
    put(bench, b"there", b"old", "other")
    copy = at(to_namespace="other", to_key=b"there")
    assert bench.ok(agdx.KV_COPY, copy) == {"Committed": {"version": 2}}
    assert bench.ok(agdx.KV_GET, at(b"there", "other"))["Value"] == {
        "key": b"there",
        "value": b"v",
        "expires_at_micros": NOW_US + 9,
        "version": 2,
    }
    assert bench.ok(agdx.KV_MOVE, at(to_key=b"new")) == {"Committed": {"version": 1}}
    assert keys(bench) == [b"new"]
    assert bench.err(agdx.KV_MOVE, at(to_key=b"new")) == "NotFound"
    assert bench.ok(agdx.KV_MOVE, at(b"new", to_key=b"new")) == {"Committed": {"version": 2}}
    assert keys(bench) == [b"new"]


def test_scan_bounds_compose_in_byte_order(bench):
    for key in (b"a", b"user:1", b"user:10", b"user:2", b"user:\xff", b"\xff", b"\xff\xff", "ü".encode()):
        put(bench, key)
    assert keys(bench, prefix=b"user:") == [b"user:1", b"user:10", b"user:2", b"user:\xff"]
    assert keys(bench, prefix=b"\xff") == [b"\xff", b"\xff\xff"]
    assert keys(bench, start=b"user:10", end=b"user:\xff") == [b"user:10", b"user:2"]
    assert keys(bench, prefix=b"user:", start=b"b", end=b"user:2") == [b"user:1", b"user:10"]
    assert keys(bench, key_contains="1") == [b"user:1", b"user:10"]
    assert keys(bench, key_contains="ser:") == [b"user:1", b"user:10", b"user:2"]  # binary keys are skipped


def test_a_scan_pages_by_its_last_key(bench):
    for i in range(5):
        put(bench, b"%d" % i)
    page = bench.ok(agdx.KV_SCAN, within(limit=2))["Page"]
    assert page["cursor"] == b"1"
    page = bench.ok(agdx.KV_SCAN, within(limit=3, cursor=b"1"))["Page"]
    assert [entry["key"] for entry in page["entries"]] == [b"2", b"3", b"4"]
    assert "cursor" not in page
    assert list(bench.err(agdx.KV_SCAN, within(limit=1001))) == ["TooLarge"]


def test_a_page_ends_early_rather_than_outgrow_a_frame(bench):
    for i in range(6):
        put(bench, b"%d" % i, bytes(7 << 20))
    seen, cursor = [], None
    while True:
        bounds = {} if cursor is None else {"cursor": cursor}
        reply = bench.read(agdx.KV_SCAN, within(limit=1000, **bounds))
        assert len(reply) < agdx.MAX_FRAME_BYTES
        page = cbor.loads(reply)["Ok"]["Page"]
        seen += [entry["key"] for entry in page["entries"]]
        cursor = page.get("cursor")
        if cursor is None:
            break
    assert seen == [b"%d" % i for i in range(6)]


def test_scan_and_namespaces_answer_the_golden_bytes(bench):
    put(bench, b"user:1", b"\x00\x01\x02", "sessions")
    put(bench, b"user:2", b"z", "sessions")
    bench.store.db.execute("UPDATE kv SET version = 0")  # the golden entry is an unversioned one
    page = {"v": 1, "namespace": "sessions", "prefix": b"user:", "limit": 1}
    assert bench.read(agdx.KV_SCAN, page) == fixture("kv_reply_page.bin")
    put(bench, b"x", b"z", "sessions")
    for i in range(12):
        put(bench, b"%d" % i, b"z", "desk_sessions")
    assert bench.read(agdx.KV_NAMESPACES, fixture("kv_namespaces.bin")) == fixture("kv_reply_namespaces.bin")


def test_delete_many_takes_expired_matches_too(bench):
    put(bench, b"a", expires_at_micros=NOW_US - 1)
    put(bench, b"ab")
    put(bench, b"b")
    bounds = {"v": 1, "namespace": "counters", "prefix": b"a"}
    assert bench.ok(agdx.KV_DELETE_MANY, bounds) == {"DeletedMany": 2}
    assert keys(bench) == [b"b"]
    bounds.pop("prefix")
    assert bench.ok(agdx.KV_DELETE_MANY, bounds) == {"DeletedMany": 1}


def test_a_session_reference_stamps_the_conversation_on_the_row(bench):
    session = {"stream": "desk", "session": SESSION}
    put(bench, b"mine", namespace="stream:desk/notes", session=session)
    put(bench, b"other", namespace="stream:desk/notes")
    scope = bench.ok(agdx.KV_GET, at(b"mine", "stream:desk/notes"))["Value"]["scope"]
    mine = scope["conversation"]
    assert len(mine) == 26
    assert keys(bench, namespace="stream:desk/notes", conversation=mine, stream="desk") == [b"mine"]
    bounds = {"v": 1, "namespace": "stream:desk/notes", "conversation": mine}
    assert bench.ok(agdx.KV_DELETE_MANY, bounds) == {"DeletedMany": 1}


def test_a_session_of_another_stream_is_refused(bench):
    session = {"stream": "other", "session": SESSION}
    request = at(b"k", "stream:desk/notes", value=b"v", session=session)
    assert list(bench.err(agdx.KV_SET, request)) == ["InvalidNamespace"]
    assert keys(bench, namespace="stream:desk/notes") == []


def test_names_keys_and_values_have_bounds(bench):
    assert list(bench.err(agdx.KV_SET, at(b"", value=b"v"))) == ["InvalidKey"]
    assert bench.err(agdx.KV_SET, at(b"k" * 513, value=b"v")) == {
        "TooLarge": {"what": "key", "size": 513, "cap": 512}
    }
    for name in ("", "n" * 129, "é" * 65, "a\nb", "a\x7f"):
        assert list(bench.err(agdx.KV_SET, at(namespace=name, value=b"v"))) == ["InvalidNamespace"], name
    put(bench, namespace="é" * 64)
    put(bench, b"k" * 512)
    too_long = bytes((8 << 20) + 1)
    assert list(bench.err(agdx.KV_SET, at(value=too_long))) == ["TooLarge"]
    assert bench.err(agdx.KV_GET, dict(at(), v=2)) == {"Version": {"expected": 1, "got": 2}}


def test_every_golden_request_is_understood(bench):
    assert bench.ok(agdx.KV_SET, fixture("kv_set.bin")) == "Written"
    assert bench.ok(agdx.KV_SET, fixture("kv_set_session.bin")) == "Written"
    put(bench, b"key", b'{"a":1}', "sessions")
    assert list(bench.ok(agdx.KV_PATCH, fixture("kv_patch_session.bin"))) == ["Versioned"]
    assert list(bench.err(agdx.KV_CAS, fixture("kv_cas_session.bin"))) == ["VersionConflict"]
    assert bench.ok(agdx.KV_DELETE, fixture("kv_delete_session.bin")) == {"Deleted": True}
    put(bench, b"user:42", b"v", "sessions")
    assert list(bench.ok(agdx.KV_COPY, fixture("kv_copy.bin"))) == ["Committed"]
    assert bench.err(agdx.KV_MOVE, fixture("kv_move.bin")) == "NotFound"
    assert list(bench.ok(agdx.KV_SCAN, fixture("kv_scan.bin"))) == ["Page"]


def test_versions_and_expiry_survive_a_restart(bench):
    put(bench)
    put(bench, expires_at_micros=NOW_US + 9)
    before = bench.ok(agdx.KV_GET, at())
    bench.restart()
    assert bench.ok(agdx.KV_GET, at()) == before


KEYS = st.binary(min_size=1, max_size=3)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stored=st.sets(KEYS, max_size=12), prefix=KEYS | st.none(), start=KEYS | st.none(), end=KEYS | st.none()
)
def test_bounds_select_what_byte_order_says(bench, stored, prefix, start, end):
    bench.ok(agdx.KV_DELETE_MANY, {"v": 1, "namespace": "counters"})
    for key in stored:
        put(bench, key)
    bounds = {name: value for name, value in (("prefix", prefix), ("start", start), ("end", end)) if value}
    expected = sorted(
        key
        for key in stored
        if (prefix is None or key.startswith(prefix))
        and (start is None or key >= start)
        and (end is None or key < end)
    )
    assert keys(bench, **bounds) == expected
