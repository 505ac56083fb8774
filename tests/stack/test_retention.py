"""Expiry and size limits take whole batches off the front; offsets go on, also after a restart."""

import pytest

from desk.stack.broker import batches, retention
from desk.stack.broker.topology import batch_size
from desk.stack.wire.codes import Code
from desk.stack.wire.iggy import encode_frames
from tests.stack.brokers import Client, engine, where

BATCH = batch_size(encode_frames([(b"x", {})]))


def number(value):
    return ("u64", value.to_bytes(8, "little"))


@pytest.fixture
def clock(monkeypatch):
    times = {"now": 1_000}
    monkeypatch.setattr(batches, "now", lambda: times["now"])
    monkeypatch.setattr(retention, "now", lambda: times["now"])
    return times


def offsets(client):
    return [record.offset for record in client.poll()]


def test_what_has_expired_goes_and_offsets_go_on(tmp_path, clock):
    with engine(tmp_path) as made:
        client = Client(made)
        client.stream()
        client.topic(options={"message_expiry": number(500)})
        for moment in (1_000, 1_400, 1_800):
            clock["now"] = moment
            client.send(b"x", b"y")
        clock["now"] = 1_900
        made.sweep(0)
        assert offsets(client) == [2, 3, 4, 5]
        clock["now"] = 9_000
        made.sweep(0)
        assert offsets(client) == []
        before = client.ask(Code.TOPIC, where())
    with engine(tmp_path) as made:
        client = Client(made)
        assert client.ask(Code.TOPIC, where()) == before
        assert client.send(b"z") == 6
        assert offsets(client) == [6]


def test_a_topic_over_its_size_loses_its_oldest_and_keeps_its_newest(tmp_path, clock):
    with engine(tmp_path) as made:
        client = Client(made)
        client.stream()
        client.topic(options={"max_topic_size": number(3 * BATCH)})
        for _ in range(5):
            client.send(b"x")
        made.sweep(0)
        assert offsets(client) == [2, 3, 4]
        made.sweep(0)
        assert offsets(client) == [2, 3, 4]
        client.send(bytes(10_000))
        made.sweep(0)
        assert offsets(client) == [5]


def test_a_poll_below_what_is_kept_starts_at_what_is(tmp_path, clock):
    with engine(tmp_path) as made:
        client = Client(made)
        client.stream()
        client.topic(options={"max_topic_size": number(BATCH)})
        for _ in range(3):
            client.send(b"x")
        made.sweep(0)
        for strategy in (1, 3, 5):
            assert [record.offset for record in client.poll(strategy=strategy)] == [2]
        assert [record.offset for record in client.poll(strategy=4, count=9)] == [2]
