"""A disk that is full, data that is damaged: one sentence, nothing half done, and on again when there is room."""

import errno
import os
from types import SimpleNamespace

import apsw
import pytest

from desk.stack.store import FILE, Store, StoreError, explain
from desk.stack.wire import agdx, cbor
from desk.stack.wire.codes import Code
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import Client, engine, poll_body, polled, send_body
from tests.stack.raw import RawClient
from tests.stack.running import StackEnded, StackProcess, stack_process


def limit(made, pages):
    """No page more than the file has now, plus some: SQLite's own full disk."""
    made.store.db.pragma("max_page_count", made.store.db.pragma("page_count") + pages)


def test_a_full_disk_refuses_and_leaves_everything_as_it_was(tmp_path):
    with engine(tmp_path) as made:
        client = Client(made)
        client.stream()
        client.topic()
        client.send(b"before")
        limit(made, 2)
        with pytest.raises(StoreError, match="is full"):
            client.send(bytes(100_000))
        with pytest.raises(StoreError, match="is full"):
            client.send(*[bytes(10_000)] * 10)
        assert [record.payload for record in client.poll()] == [b"before"]
        limit(made, 1_000)
        assert client.send(b"after") == 1
        assert [record.payload for record in client.poll()] == [b"before", b"after"]
    with engine(tmp_path) as made:
        assert [record.payload for record in Client(made).poll()] == [b"before", b"after"]


FULL = r"^The disk that holds \S+ is full: nothing was changed\.$"


def test_a_disk_without_room_for_a_byte_is_told(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(StoreError, match=FULL):
            Store.open(tmp_path, [])
    Store.open(tmp_path, []).close()


def test_the_failure_is_told_and_not_that_sqlite_has_rolled_back_by_itself(tmp_path):
    """As it does on a full disk."""
    with pytest.raises(StoreError, match="UNIQUE"):
        Store.open(tmp_path, ["CREATE TABLE t (x UNIQUE); INSERT OR ROLLBACK INTO t VALUES (1), (1)"])


def test_a_disk_that_is_full_before_the_tables_are_made_is_told(tmp_path):
    tables = ";".join(f"CREATE TABLE IF NOT EXISTS t{number} (x)" for number in range(20))
    with pytest.raises(StoreError, match=FULL):
        Store.open(tmp_path, ["PRAGMA max_page_count = 5", tables])
    Store.open(tmp_path, [tables]).close()


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CantOpenError])
def test_what_sqlite_calls_otherwise_is_told_as_a_full_disk_when_there_is_no_room(
    tmp_path, monkeypatch, error
):
    assert "is full" not in str(explain(error("disk I/O error"), tmp_path))
    real = os.statvfs(tmp_path)
    full = SimpleNamespace(f_bavail=2, f_frsize=real.f_frsize)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(StoreError, match=FULL):
        raise explain(error("disk I/O error"), tmp_path)


PAGE = 8_192  # of the file, as store.py sets it


def damage(folder, at, size=PAGE):
    with open(folder / FILE, "r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * size)


async def written(folder):
    """A folder with enough in it that its records fill pages of their own."""
    async with stack_process(folder) as stack:
        client = await RawClient.connect(stack.connection)
        await client.ask(Code.CREATE_STREAM, name("s"))
        await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
        for _ in range(200):
            await client.ask(Code.SEND, send_body(b"x" * 2_000))
        client.close()
        assert await stack.stop() == (0, "")
    return (folder / FILE).read_bytes()


async def test_a_damaged_head_is_refused_in_one_sentence_and_left_alone(tmp_path):
    await written(tmp_path)
    damage(tmp_path, 0)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(StackEnded) as ended:
        await StackProcess(tmp_path).start()
    assert ended.value.code == 2
    assert "is damaged" in ended.value.text
    assert ended.value.text.count("\n") == 1
    assert (tmp_path / FILE).read_bytes() == before


async def test_a_damaged_page_is_reported_and_the_rest_is_served(tmp_path):
    content = await written(tmp_path)
    last = content.rindex(b"x" * 2_000) // PAGE  # of the pages that hold records
    damage(tmp_path, (last - 3) * PAGE)
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        reply = await client.ask(Code.POLL, poll_body())
        assert reply.status == 1
        assert len(polled((await client.ask(Code.POLL, poll_body(count=5))).body)) == 5
        assert (await client.ask(Code.SEND, send_body(b"on"))).status == 0
        client.close()
        code, complaints = await stack.stop()
    assert code == 0
    assert "is damaged" in complaints
    assert "Traceback" not in complaints


def test_a_damaged_page_met_by_the_sweep_is_told_in_one_sentence(tmp_path, monkeypatch):
    def damaged(*_):
        raise apsw.CorruptError("database disk image is malformed")

    with engine(tmp_path) as made:
        monkeypatch.setattr("desk.stack.engine.retention.due", damaged)
        with pytest.raises(StoreError, match="is damaged"):
            made.sweep(0)


def key(number):
    return {"v": 1, "namespace": "n", "key": b"key-%03d" % number}


async def test_a_damaged_page_of_keys_is_reported_and_the_rest_is_served(tmp_path):
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        for number in range(200):
            request = cbor.dumps({**key(number), "value": b"y" * 1_000})
            body = cbor.dumps({"v": 1, "operation_id": number + 1, "payload": request})
            assert b"bOk" in (await client.ask(agdx.KV_SET, body)).body
        client.close()
        assert await stack.stop() == (0, "")
    page = (tmp_path / FILE).read_bytes().index(b"key-100" + b"y" * 1_000) // PAGE
    damage(tmp_path, page * PAGE)
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        assert (await client.ask(agdx.KV_GET, cbor.dumps(key(100)))).status == 1
        for number in (0, 199):
            assert b"y" * 1_000 in (await client.ask(agdx.KV_GET, cbor.dumps(key(number)))).body
        client.close()
        code, complaints = await stack.stop()
    assert code == 0
    (complaint,) = complaints.splitlines()
    assert f"The data in {tmp_path} is damaged" in complaint
