"""Leases: a token that only grows, a live lease that always conflicts, writes only under a live fence."""

import pytest

from desk.stack.engine import Caller
from desk.stack.wire import agdx, cbor
from tests.stack.banding import NOW_US, Bench
from tests.stack.sdist import fixture

AT = {"v": 1, "namespace": "runs", "key": b"run-1"}


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def acquire(bench, holder="a", ttl=10_000_000, **more):
    request = {**AT, "lease_ttl_micros": ttl, "holder_id": holder, **more}
    return bench.ok(agdx.KV_LEASE, request)["Leased"]


def renewal(token, holder="a", ttl=10_000_000, **more):
    return {**AT, "holder_id": holder, "lease_token": token, "lease_ttl_micros": ttl, **more}


def write(token, key=b"state", **more):
    return {
        "v": 1,
        "namespace": "states",
        "key": key,
        "value": b"v",
        "expect": "Absent",
        "fence_namespace": "runs",
        "fence_key": b"run-1",
        "fence_token": token,
        **more,
    }


def test_grants_and_renewals_answer_the_golden_bytes(bench):
    lease = cbor.loads(fixture("kv_lease.bin"))
    for _ in range(2):
        token = bench.ok(agdx.KV_LEASE, lease)["Leased"]["lease_token"]
        release = dict(cbor.loads(fixture("kv_release.bin")), lease_token=token)
        assert bench.ok(agdx.KV_RELEASE, release) == {"Released": True}
        assert bench.ok(agdx.KV_RELEASE, release) == {"Released": False}
    golden = cbor.loads(fixture("kv_reply_leased.bin"))["Ok"]["Leased"]["position"]
    bench.store.db.execute(
        "UPDATE mutation_head SET generation = ?, reserved = ?",
        (golden["topic_generation"], golden["offset"] - 1),
    )
    bench.band.reload()
    assert bench.mutate(agdx.KV_LEASE, fixture("kv_lease.bin")) == fixture("kv_reply_leased.bin")
    renew = dict(cbor.loads(fixture("kv_lease_renew.bin")), subject_user_id=lease["subject_user_id"])
    assert bench.mutate(agdx.KV_LEASE_RENEW, renew) == fixture("kv_reply_renewed.bin")


def test_a_live_lease_conflicts_also_for_its_holder_and_names_the_fence(bench):
    assert acquire(bench)["lease_token"] == 1
    request = {**AT, "lease_ttl_micros": 10_000_000, "holder_id": "a"}
    assert bench.err(agdx.KV_LEASE, request) == {"VersionConflict": {"current": 1}}
    bench.clock.forward(10)
    assert acquire(bench, "b")["lease_token"] == 2


def test_only_the_holder_with_the_current_token_renews(bench):
    token = acquire(bench)["lease_token"]
    bench.clock.forward(9)
    assert bench.ok(agdx.KV_LEASE_RENEW, renewal(token))["Renewed"]["lease_token"] == token
    bench.clock.forward(9)  # alive because of the renewal
    for wrong in (renewal(token, "b"), renewal(token + 1), renewal(token, subject_user_id=9)):
        assert bench.err(agdx.KV_LEASE_RENEW, wrong) == "LeaseLost"
    bench.clock.forward(1)
    assert bench.err(agdx.KV_LEASE_RENEW, renewal(token)) == "LeaseLost"


def test_renewal_needs_the_same_subject_by_default_the_caller(bench):
    token = acquire(bench)["lease_token"]
    somebody = Caller(2, 7, "127.0.0.1:1")
    reply = cbor.loads(bench.mutate(agdx.KV_LEASE_RENEW, renewal(token), somebody))
    assert reply == {"Err": "LeaseLost"}


def test_release_is_idempotent_under_the_current_token_only(bench):
    token = acquire(bench)["lease_token"]
    release = {**AT, "lease_token": token, "holder_id": "a"}
    assert bench.err(agdx.KV_RELEASE, {**release, "holder_id": "b"}) == "LeaseLost"
    assert bench.ok(agdx.KV_RELEASE, release) == {"Released": True}
    assert bench.ok(agdx.KV_RELEASE, release) == {"Released": False}
    acquire(bench, "b")
    assert bench.err(agdx.KV_RELEASE, release) == "LeaseLost"


def test_a_fenced_write_needs_a_live_lease_first_and_then_its_precondition(bench):
    assert bench.err(agdx.KV_CAS_FENCED, write(1)) == "LeaseLost"
    token = acquire(bench)["lease_token"]
    assert bench.ok(agdx.KV_CAS_FENCED, write(token)) == {"Committed": {"version": 1}}
    assert bench.err(agdx.KV_CAS_FENCED, write(token)) == {"VersionConflict": {"current": 1}}
    assert bench.ok(agdx.KV_CAS_FENCED, write(token, expect={"Match": 1})) == {"Committed": {"version": 2}}
    assert bench.err(agdx.KV_CAS_FENCED, write(token + 1, expect={"Match": 2})) == "LeaseLost"
    bench.clock.forward(10)
    assert bench.err(agdx.KV_CAS_FENCED, write(token, expect={"Match": 2})) == "LeaseLost"
    acquire(bench, "b")
    assert bench.err(agdx.KV_CAS_FENCED, write(token, expect={"Match": 2})) == "LeaseLost"


def test_leases_are_invisible_to_key_value_reads(bench):
    acquire(bench)
    assert bench.ok(agdx.KV_GET, AT) == {"Value": None}
    assert bench.ok(agdx.KV_NAMESPACES, {"v": 1}) == {"Namespaces": []}


def test_a_takeover_read_at_the_grant_is_served_and_one_ahead_is_stale(bench):
    grant = acquire(bench)["position"]
    assert bench.ok(agdx.KV_GET, {**AT, "min_position": grant}) == {"Value": None}
    ahead = {**grant, "offset": grant["offset"] + 1}
    assert bench.err(agdx.KV_GET, {**AT, "min_position": ahead}) == {"Stale": {"required": ahead}}
    other = {**grant, "topic_generation": grant["topic_generation"] + 1}
    assert bench.err(agdx.KV_GET, {**AT, "min_position": other}) == {"Stale": {"required": other}}
    assert bench.read(agdx.KV_GET, fixture("kv_get_barriered.bin")) == fixture("kv_reply_stale.bin")


def test_fences_and_leases_survive_a_restart(bench):
    token = acquire(bench)["lease_token"]
    bench.restart()
    assert bench.ok(agdx.KV_LEASE_RENEW, renewal(token))["Renewed"]["lease_token"] == token
    bench.ok(agdx.KV_RELEASE, {**AT, "lease_token": token, "holder_id": "a"})
    bench.restart()
    assert acquire(bench, "b")["lease_token"] == token + 1


@pytest.mark.parametrize(
    "change", [{"holder_id": ""}, {"holder_id": "h" * 129}, {"lease_ttl_micros": 999_999}]
)
def test_holders_and_lifetimes_have_bounds(bench, change):
    request = {**AT, "lease_ttl_micros": 10_000_000, "holder_id": "a", **change}
    assert list(bench.err(agdx.KV_LEASE, request)) == ["InvalidKey"]
    assert bench.clock.us == NOW_US
