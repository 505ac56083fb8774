"""Batches, frames and bodies: what is written reads back, and rubbish ends as one named error."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.stack.wire import iggy, messages
from desk.stack.wire.codes import PROTOCOL_VERSION, Refused
from desk.stack.wire.iggy import MalformedBatch
from desk.stack.wire.scalars import U32, Reader, identifier, name

texts = st.text(min_size=1, max_size=20).filter(lambda text: len(text.encode()) < 256)
values = st.tuples(st.sampled_from(iggy.KINDS), st.binary(min_size=1, max_size=40))
headers = st.dictionaries(texts, values, max_size=4)
records = st.lists(st.tuples(st.binary(max_size=100), headers), min_size=1, max_size=6)
identifiers = st.one_of(st.integers(0, 2**32 - 1), texts)


def batch(pairs) -> bytes:
    frames = iggy.encode_frames(pairs)
    return iggy.encode_batch_header(0, 0, 0, 77, len(frames), len(pairs)) + frames


@given(records)
def test_records_read_back_as_they_were_written(pairs):
    decoded = iggy.decode_batch(batch(pairs))
    assert (decoded.count, decoded.origin) == (len(pairs), 77)
    found = list(iggy.decode_records(decoded.frames, decoded.count, base=40, timestamp=1_000))
    assert [(r.payload, r.headers) for r in found] == pairs
    assert [r.offset for r in found] == [40 + i for i in range(len(pairs))]
    assert {r.timestamp for r in found} == {1_000}
    assert len({r.id for r in found}) == len(pairs)


@given(records, st.data())
def test_records_from_an_offset_inside(pairs, data):
    start = data.draw(st.integers(0, len(pairs)))
    frames = iggy.encode_frames(pairs)
    found = list(iggy.decode_records(frames, len(pairs), 0, 0, start))
    assert [r.offset for r in found] == list(range(start, len(pairs)))


@given(records, st.data())
def test_a_damaged_batch_is_refused_or_still_one(pairs, data):
    raw = bytearray(batch(pairs))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        decoded = iggy.decode_batch(bytes(raw))
    except MalformedBatch:
        return
    assert len(list(iggy.decode_records(decoded.frames, decoded.count, 0, 0))) == decoded.count


@given(st.integers(1, 40), st.integers(0, 9), st.booleans(), st.data())
def test_frames_of_one_size_are_checked_like_any(count, size, headed, data):
    headers = {"n": ("u8", b"1")} if headed else {}
    raw = bytearray(batch([(bytes(size), headers)] * count))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(256, len(raw) - 1))
        raw[at] ^= data.draw(st.integers(1, 255))
    body = bytes(raw)
    try:
        walked = iggy._walked(body, iggy.BATCH_HEADER, count)
    except MalformedBatch:
        with pytest.raises(MalformedBatch):
            iggy.decode_batch(body)
        return
    assert iggy.decode_batch(body) == iggy.Batch(count, 77, body[iggy.BATCH_HEADER :], walked > 0)


@given(records, st.data())
def test_a_cut_batch_is_refused(pairs, data):
    raw = batch(pairs)
    with pytest.raises(MalformedBatch):
        iggy.decode_batch(raw[: data.draw(st.integers(0, len(raw) - 1))])


def test_a_count_without_messages_takes_no_time():
    raw = bytearray(batch([(b"", {})]))
    struct.pack_into("<I", raw, 48, 2**32 - 1)
    with pytest.raises(MalformedBatch):
        iggy.decode_batch(bytes(raw))


@given(st.binary(max_size=80))
def test_odd_headers_do_not_stop_a_reader(block):
    assert isinstance(iggy.decode_headers(block), dict)


@given(identifiers)
def test_identifiers_read_back(value):
    assert Reader(identifier(value)).identifier() == value


def poll_body(
    consumer="reader", stream="s", topic="t", partition=None, strategy=5, value=0, count=10, kind=1
):
    present = b"\0\0\0\0\0" if partition is None else b"\1" + U32.pack(partition)
    where = identifier(consumer) + identifier(stream) + identifier(topic) + present
    return bytes((kind,)) + where + bytes((strategy,)) + struct.pack("<QIB", value, count, 1)


@given(identifiers, identifiers, st.none() | st.integers(0, 9), st.sampled_from(messages.Strategy))
def test_polls_read_back(consumer, topic, partition, strategy):
    body = poll_body(consumer, "s", topic, partition, strategy, 5, 3)
    wanted = messages.decode_poll(body)
    assert (wanted.consumer, wanted.topic, wanted.partition) == (consumer, topic, partition)
    assert (wanted.strategy, wanted.value, wanted.count, wanted.auto_commit) == (strategy, 5, 3, True)


@pytest.mark.parametrize("partitioning", [b"\2\3abc", b"\1\1a", b"\3\0", b"\4\0", b"\0\0"])
def test_odd_partitioning_is_refused(partitioning):
    target = identifier("s") + identifier("t") + partitioning + U32.pack(1)
    with pytest.raises(Refused):
        messages.decode_send(U32.pack(len(target)) + target + batch([(b"x", {})]))


def test_both_logins_ride_one_operation():
    start = U32.pack(PROTOCOL_VERSION) + name("rust-sdk") + name("0.11.0")
    login = messages.decode_login(start + name("iggy") + name("secret") + U32.pack(0))
    assert (login.user, login.password, login.token) == ("iggy", "secret", None)
    login = messages.decode_login(start + name("a-token") + U32.pack(3) + b"ctx")
    assert (login.user, login.password, login.token) == (None, None, "a-token")


def test_the_login_the_wheel_sends():
    raw = "002c0000 08 727573742d73646b 06 302e31312e30 04 69676779 04 69676779 00000000"
    login = messages.decode_login(bytes.fromhex(raw))
    assert (login.version, login.sdk, login.user, login.password) == (11264, "rust-sdk", "iggy", "iggy")
