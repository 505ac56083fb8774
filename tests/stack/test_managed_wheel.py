"""The real SDK over a socket: key-value, leases, batches, memory, presence; and what SIGKILL must not undo."""

import struct

import laser_sdk as ls
import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.running import running_stack, stack_process

STREAM = "desk"
KEEP = ls.TopicRetention.expire_after(86_400_000)


async def connect(connection):
    laser = await ls.Laser.connect(connection, stream=STREAM)
    await laser.stream(STREAM).ensure()
    return laser


async def conflict(awaitable):
    with pytest.raises(ls.KvError) as error:
        await awaitable
    assert error.value.version_conflict
    return error.value.detail["VersionConflict"]["current"]


@pytest.fixture
async def laser(tmp_path):
    async with running_stack(tmp_path) as connection:
        laser = await connect(connection)
        yield laser
        await laser.close()


async def test_key_value_through_the_wheel(laser):
    kv = laser.kv("tickets")
    assert (await laser.capabilities()).kv.fenced_leases
    await kv.set("a").json({"state": "open"}).send()
    assert (await kv.get_entry("a")).version == 1
    assert await kv.set("b").bytes(b"1").expect_absent().commit() == 1
    assert await conflict(kv.set("b").bytes(b"1").expect_absent().commit()) == 1
    assert await kv.set("b").bytes(b"2").expect_version(1).commit() == 2
    assert (await kv.exists("b")).size_bytes == 1 and await kv.exists("none") is None
    assert await kv.get_many(["a", "none", "b"]) == [b'{"state":"open"}', None, b"2"]
    assert await kv.patch("a", b'{"state":null,"n":1}') == 2
    assert await kv.get("a") == b'{"n":1}'
    assert await kv.copy_to("a", "c", to_namespace="archive").send() == 1
    assert await kv.move_to("b", "b2").send() == 1
    for i in range(7):
        await kv.set(f"k{i}").bytes(b"v").send()
    page = await kv.scan().prefix("k").limit(3).fetch()
    assert [entry.key for entry in page.entries] == [b"k0", b"k1", b"k2"]
    assert len(await kv.scan().prefix("k").limit(3).entries()) == 7
    assert await kv.delete("k0") and not await kv.delete("k0")
    assert await kv.delete_many().prefix("k").send() == 6
    assert [(n["namespace"], n["entries"]) for n in await laser.kv_namespaces()] == [
        ("archive", 1),
        ("tickets", 2),
    ]


async def test_leases_and_fences_through_the_wheel(laser):
    kv = laser.kv("tickets")
    lease = await kv.lease("run", "worker-1", 60_000)
    assert await conflict(kv.lease("run", "worker-1", 60_000)) == lease.token
    renewed = await kv.renew_lease("run", "worker-1", lease.token, 60_000)
    assert renewed.token == lease.token
    assert await kv.get_entry_at_least("none", renewed.position) is None
    assert (
        await kv.cas_fenced("effect", "tickets", "run", lease.token).bytes(b"v").expect_absent().commit() == 1
    )
    assert await kv.release("run", "worker-1", lease.token)
    with pytest.raises(ls.KvError, match="lease lost"):
        await kv.cas_fenced("more", "tickets", "run", lease.token).bytes(b"v").expect_absent().commit()
    assert (await kv.lease("run", "worker-2", 60_000)).token == lease.token + 1


async def test_memory_is_there_right_behind_its_publish(laser):
    await laser.bootstrap(partitions=1, retention=KEEP)
    memory = laser.memory("customers")
    for i in range(5):
        identity = await memory.remember(f"fact {i}".encode())
        assert f"fact {i}".encode() in [item.payload for item in await memory.recall()]
    await memory.forget(identity)
    assert len(await memory.recall()) == 4
    await memory.set("c-17", b"prefers mail")
    assert await memory.fetch("c-17") == b"prefers mail"


async def test_a_batch_of_raw_frames(laser):
    get = cbor.dumps({"v": 1, "namespace": "n", "key": b"k"})
    slots = await laser.execute_batch(
        [{"code": agdx.KV_GET, "payload": get}, {"code": agdx.CHECKPOINT, "payload": get}]
    )
    assert cbor.loads(slots[0]) == {"Ok": {"Value": None}}
    assert cbor.loads(slots[1])["code"] == "unsupported"


async def test_versions_fences_and_memory_survive_a_killed_stack(tmp_path):
    async with stack_process(tmp_path) as stack:
        laser = await connect(stack.connection)
        await laser.bootstrap(partitions=1, retention=KEEP)
        kv = laser.kv("tickets")
        for i in range(3):
            await kv.set("a").bytes(b"%d" % i).send()
        lease = await kv.lease("run", "worker-1", 300_000)
        await laser.memory("customers").remember(b"fact")
        await stack.kill()
        await stack.start()
        await laser.close()
        laser = await connect(stack.connection)
        kv = laser.kv("tickets")
        assert (await kv.get("a"), (await kv.get_entry("a")).version) == (b"2", 3)
        assert await kv.set("a").bytes(b"3").expect_version(3).commit() == 4
        assert await kv.get_entry_at_least("a", lease.position) is not None
        assert (await kv.renew_lease("run", "worker-1", lease.token, 60_000)).token == lease.token
        assert await conflict(kv.lease("run", "worker-2", 60_000)) == lease.token
        assert [item.payload for item in await laser.memory("customers").recall()] == [b"fact"]
        await laser.close()


async def test_a_dead_letter_is_redriven_from_its_numeric_place_also_after_a_kill(tmp_path):
    async with stack_process(tmp_path) as stack:
        laser = await connect(stack.connection)
        await laser.topic("jobs").ensure(1)
        await laser.topic("jobs").publish().payload(b"fine").send()
        sent = await laser.topic("jobs").publish().payload(b"poison").send()
        (place,) = sent.confirmations
        source = struct.pack(">IIIQ", place.stream_id, place.topic_id, place.partition_id, place.base_offset)
        capsule = {"source": source, "reason": 1, "attempts": 3, "payload": b"poison"}
        await stack.kill()
        await stack.start()
        await laser.close()
        laser = await connect(stack.connection)
        await laser.redrive_dead_letter(capsule)
        records = await laser.topic("jobs").replay().poll()
        assert [record.payload for record in records] == [b"fine", b"poison", b"poison"]
        with pytest.raises(ls.LaserError, match="no longer exists"):
            gone = struct.pack(">IIIQ", place.stream_id, 999, 0, 0)
            await laser.redrive_dead_letter({**capsule, "source": gone})
        await laser.close()
