"""Streams, messages and offsets through the engine, and the same after it is opened again."""

import struct

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.broker import batches
from desk.stack.wire.codes import RESYNC, Code, Refused, Status
from desk.stack.wire.iggy import encode_headers
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import (
    Client,
    engine,
    offset_body,
    poll_body,
    polled,
    send_body,
    where,
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def client(folder):
    with engine(folder) as made:
        client = Client(made)
        client.stream()
        client.topic()
        yield client


def payloads(records):
    return [record.payload for record in records]


def refused(status):
    return pytest.raises(Refused, match=status.name)


# streams and topics


@pytest.mark.parametrize(
    ("code", "body", "status"),
    [
        (Code.CREATE_STREAM, name("s"), Status.STREAM_EXISTS),
        (Code.DELETE_STREAM, identifier("other"), Status.STREAM_NOT_FOUND),
        (Code.TOPICS, identifier("other"), Status.STREAM_NOT_FOUND),
        (Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"), Status.TOPIC_EXISTS),
        (Code.CREATE_TOPIC, identifier("s") + U32.pack(0) + name("u"), Status.BAD_PARTITIONS),
        (Code.CREATE_TOPIC, identifier("s") + U32.pack(1001) + name("u"), Status.TOO_MANY_PARTITIONS),
        (Code.DELETE_TOPIC, where("other"), Status.TOPIC_NOT_FOUND),
        (Code.SEND, send_body(b"x", topic="other"), Status.TOPIC_NOT_FOUND),
        (Code.SEND, send_body(b"x", partition=1), Status.PARTITION_NOT_FOUND),
        (Code.POLL, poll_body(topic="other"), Status.TOPIC_NOT_FOUND),
        (Code.POLL, poll_body(partition=1), Status.PARTITION_NOT_FOUND),
        (Code.DELETE_PARTITIONS, where() + U32.pack(2), Status.BAD_PARTITIONS),
        (Code.STORE_OFFSET, offset_body() + bytes(9), Status.INVALID_OFFSET),
        (Code.DELETE_OFFSET, offset_body() + bytes(1), Status.OFFSET_NOT_FOUND),
        (Code.JOIN_GROUP, where() + identifier("none"), Status.GROUP_NOT_FOUND),
        (Code.FLUSH, b"", Status.FEATURE_UNAVAILABLE),
        (999, b"", Status.INVALID_COMMAND),
        (1_000_000, b"", Status.INVALID_COMMAND),
    ],
)
def test_what_cannot_be_is_refused(client, code, body, status):
    with refused(status):
        client.ask(code, body)


def test_reading_what_is_missing_answers_nothing(client):
    assert client.ask(Code.STREAM, identifier("other")) == b""
    assert client.ask(Code.TOPIC, where("t", "other")) == b""
    assert client.ask(Code.TOPIC, where("other")) == b""
    assert client.ask(Code.GROUP, where() + identifier("none")) == b""
    assert client.offset() is None


def test_numbers_are_the_lowest_free_and_names_and_numbers_both_find(client):
    client.topic("u")
    client.ask(Code.DELETE_TOPIC, where("t"))
    client.topic("v")
    assert client.ask(Code.TOPIC, where(0, 0)) == client.ask(Code.TOPIC, where("v"))


def test_a_topic_made_again_is_another_generation(client):
    def created():
        return struct.unpack_from("<Q", client.ask(Code.TOPIC, where()), 4)[0]

    before = created()
    client.ask(Code.DELETE_TOPIC, where())
    client.topic()
    assert created() > before
    assert client.poll() == []


def test_options_come_back_unknown_ones_too(client):
    options = {"message_expiry": ("u64", (7).to_bytes(8, "little")), "shoe_size": ("u8", b"\x2a")}
    client.topic("u", options=options)
    reply = client.ask(Code.TOPIC, where("u"))
    assert struct.unpack_from("<Q", reply, 16)[0] == 7
    assert encode_headers(options) in reply


def test_purging_starts_offsets_again_and_keeps_groups(client):
    client.send(b"a", b"b")
    client.group(Code.CREATE_GROUP)
    client.store(1)
    client.ask(Code.PURGE_TOPIC, where())
    assert (client.poll(), client.offset()) == ([], None)
    assert client.send(b"c") == 0
    assert client.group(Code.GROUP)


def test_partitions_are_added_and_taken_from_the_end(client):
    client.ask(Code.CREATE_PARTITIONS, where() + U32.pack(2))
    assert client.send(b"x", partition=2) == 0
    client.ask(Code.DELETE_PARTITIONS, where() + U32.pack(1))
    with refused(Status.PARTITION_NOT_FOUND):
        client.send(b"x", partition=2)
    client.ask(Code.CREATE_PARTITIONS, where() + U32.pack(1))
    assert client.poll(partition=2) == []


def test_the_server_s_own_topics_take_only_control_records(client):
    broker = client.engine.broker
    with client.engine.store.transaction():
        own = broker.topology.create_stream("_agdx", {})
        for topic in ("control.commands", "kv.mutations"):
            broker.topology.create_topic(own, topic, 1, {})
    assert client.send(b"x", stream="_agdx", topic="control.commands") == 0
    with refused(Status.UNAUTHORIZED):
        client.send(b"x", stream="_agdx", topic="kv.mutations")
    with refused(Status.UNAUTHORIZED):
        client.ask(Code.DELETE_STREAM, identifier("_agdx"))
    with refused(Status.UNAUTHORIZED):
        client.ask(Code.PURGE_TOPIC, where("kv.mutations", "_agdx"))


# messages


def test_messages_come_back_as_they_were_sent(client):
    assert client.send(b"a", b"b") == 0
    assert client.send(b"c") == 2
    found = client.poll()
    assert payloads(found) == [b"a", b"b", b"c"]
    assert [record.offset for record in found] == [0, 1, 2]
    assert [record.timestamp for record in found] == sorted(record.timestamp for record in found)


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    start=st.integers(0, 31),
    count=st.integers(0, 31),
)
def test_a_poll_is_a_slice_however_the_batches_lie(tmp_path_factory, sizes, start, count):
    with engine(tmp_path_factory.mktemp("slices")) as made:
        client = Client(made)
        client.stream()
        client.topic()
        sent = [bytes((n,)) for n in range(sum(sizes))]
        at = 0
        for size in sizes:
            assert client.send(*sent[at : at + size]) == at
            at += size
        assert payloads(client.poll(value=start, count=count)) == sent[start : start + count]
        assert payloads(client.poll(strategy=4, count=count)) == (sent[-count:] if count else [])
        assert payloads(client.poll(strategy=3, count=count)) == sent[:count]


def test_polling_by_time_starts_at_the_first_batch_not_older(client, monkeypatch):
    clock = iter(range(1_000, 9_000, 1_000))
    monkeypatch.setattr(batches, "now", lambda: next(clock))
    for n in range(5):
        client.send(bytes((n,)), bytes((n,)))
    for wanted, first in [(0, 0), (1_000, 0), (1_001, 2), (3_000, 4), (5_000, 8)]:
        assert client.poll(strategy=2, value=wanted)[0].offset == first
    assert client.poll(strategy=2, value=5_001) == []


def test_broker_time_never_runs_backwards(client, monkeypatch):
    clock = iter([5_000, 3_000, 6_000])
    monkeypatch.setattr(batches, "now", lambda: next(clock))
    for _ in range(3):
        client.send(b"x")
    assert [record.timestamp for record in client.poll()] == [5_000, 5_000, 6_000]


def test_a_key_always_goes_to_the_same_partition(client):
    client.topic("u", partitions=5)
    target = where("u") + b"\3" + name("van-3") + U32.pack(1)
    batch = send_body(b"x")[4 + U32.unpack_from(send_body(b"x"))[0] :]
    reply = client.ask(Code.SEND, U32.pack(len(target)) + target + batch)
    assert U32.unpack_from(reply, 12)[0] == xxhash.xxh32_intdigest(b"van-3", seed=0) % 5


# offsets


def test_next_goes_on_after_what_was_committed(client):
    client.send(b"a", b"b", b"c")
    assert payloads(client.poll(strategy=5, count=2)) == [b"a", b"b"]
    assert payloads(client.poll(strategy=5, count=2, commit=True)) == [b"a", b"b"]
    assert client.offset() == 1
    assert payloads(client.poll(strategy=5)) == [b"c"]
    assert payloads(client.poll(strategy=5, consumer="other", count=1)) == [b"a"]


def test_polling_never_lowers_an_offset_and_storing_may(client):
    client.send(b"a", b"b", b"c")
    client.store(2)
    client.poll(value=0, count=1, commit=True)
    assert client.offset() == 2
    client.store(0)
    assert client.offset() == 0
    with refused(Status.INVALID_OFFSET):
        client.store(3)


def test_a_consumer_without_a_partition_reads_the_first(client):
    client.send(b"a")
    assert payloads(client.poll(partition=None)) == [b"a"]


# groups


def reading_group(client):
    client.group(Code.CREATE_GROUP)
    client.group(Code.JOIN_GROUP)
    return client.assignment()


def test_a_group_member_polls_what_it_owns(client):
    client.send(b"a")
    assert reading_group(client)[1] == [0]
    assert payloads(client.poll(kind=2, consumer="g", strategy=5, commit=True)) == [b"a"]
    assert client.offset(kind=2, consumer="g") == 0


def test_a_stranger_is_told_to_ask_again_and_cannot_commit(client):
    client.send(b"a")
    reading_group(client)
    stranger = Client(client.engine, number=2)
    reply = stranger.ask(Code.POLL, poll_body(kind=2, consumer="g", strategy=5))
    assert U32.unpack_from(reply)[0] == RESYNC
    with refused(Status.NOT_OWNED):
        stranger.store(0, kind=2, consumer="g")
    assert stranger.assignment() is None
    with refused(Status.MEMBER_NOT_FOUND):
        stranger.group(Code.LEAVE_GROUP)


def test_a_partition_moves_when_its_owner_is_gone(client):
    client.send(b"a")
    reading_group(client)
    client.poll(kind=2, consumer="g", strategy=5)
    second = Client(client.engine, number=2)
    second.group(Code.JOIN_GROUP)
    assert second.assignment()[1] == []
    client.engine.disconnected(client.session)
    assert second.assignment()[1] == [0]
    assert payloads(second.poll(kind=2, consumer="g", strategy=5)) == [b"a"]


def test_deleting_a_group_forgets_its_offsets_and_never_reuses_its_number(client):
    client.send(b"a")
    reading_group(client)
    client.store(0, kind=2, consumer="g")
    client.group(Code.DELETE_GROUP)
    reading_group(client)
    assert client.offset(kind=2, consumer="g") is None
    assert U32.unpack_from(client.group(Code.GROUP))[0] == 1


# opened again


def test_everything_but_memberships_is_there_after_a_restart(folder):
    with engine(folder) as made:
        client = Client(made)
        client.stream()
        client.topic(partitions=2, options={"message_expiry": ("u64", bytes(8))})
        client.send(b"a", b"b", partition=1)
        client.send(b"c", partition=1)
        generation, _ = reading_group(client)
        client.store(1, kind=2, consumer="g", partition=1)
        client.store(2, partition=1)
        kept = [client.ask(Code.STREAM, identifier("s")), client.ask(Code.TOPIC, where())]
        epoch = made.op
    with engine(folder) as made:
        client = Client(made)
        assert [client.ask(Code.STREAM, identifier("s")), client.ask(Code.TOPIC, where())] == kept
        assert payloads(client.poll(partition=1)) == [b"a", b"b", b"c"]
        assert client.send(b"d", partition=1) == 3
        assert client.offset(kind=2, consumer="g", partition=1) == 1
        assert client.offset(partition=1) == 2
        assert client.assignment() is None
        client.group(Code.JOIN_GROUP)
        assert client.assignment()[0] > generation
        assert made.op > epoch


def test_memory_follows_a_failed_transaction_back(client):
    client.send(b"a")
    client.group(Code.CREATE_GROUP)
    broker = client.engine.broker
    fold, broker.fold = broker.fold, lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        client.send(b"b")
    broker.fold = fold
    assert payloads(client.poll()) == [b"a"]
    assert client.send(b"c") == 1
    assert payloads(polled(client.ask(Code.POLL, poll_body()))) == [b"a", b"c"]
