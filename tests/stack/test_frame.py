"""Frames: any pieces give the same frames, bounds hold before memory is taken, replies read back as written."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.stack.wire import frame
from desk.stack.wire.codes import Code, Eviction, Operation, Status
from desk.stack.wire.frame import BadFrame, Splitter

clients = st.binary(min_size=16, max_size=16)


def request_frame(body: bytes = b"", client: bytes = bytes(16)) -> bytes:
    return frame.encode_request(Operation.NON_REPLICATED, Code.POLL, body, client=client, session=7, number=3)


@given(st.lists(st.binary(max_size=300), max_size=5), st.data())
def test_pieces_of_any_size_give_the_same_frames(bodies, data):
    stream = b"".join(request_frame(body) for body in bodies)
    splitter, found = Splitter(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        splitter.feed(stream[:size])
        stream = stream[size:]
        while (whole := splitter.next()) is not None:
            found.append(frame.decode_request(whole).body)
    assert found == bodies


@given(st.binary(max_size=100), clients)
def test_a_request_reads_as_it_was_written(body, client):
    request = frame.decode_request(request_frame(body, client))
    assert (request.client, request.number, request.session) == (client, 3, 7)
    assert (request.code, request.body) == (Code.POLL, body)


@pytest.mark.parametrize("size", [0, 255, frame.LARGEST_BEFORE_LOGIN + 1, 2**32 - 1])
def test_a_size_out_of_bounds_is_refused_with_the_header(size):
    splitter = Splitter()
    header = bytearray(request_frame())
    struct.pack_into("<I", header, 48, size)
    splitter.feed(bytes(header))
    with pytest.raises(BadFrame):
        splitter.next()


def test_the_bound_is_what_the_connection_may_send():
    splitter = Splitter()
    large = request_frame(bytes(frame.LARGEST_BEFORE_LOGIN))
    splitter.largest = frame.LARGEST
    splitter.feed(large)
    assert splitter.next() == large


@given(st.binary(min_size=256, max_size=400))
def test_rubbish_is_a_bad_frame_or_a_request(rubbish):
    splitter = Splitter()
    splitter.feed(rubbish)
    try:
        whole = splitter.next()
        assert whole is None or frame.decode_request(whole)
    except BadFrame:
        pass


@pytest.mark.parametrize("operation", [1, 2, 3, 128, 138, 148, 160, 161, 162])
def test_success_reads_back_with_its_body(operation):
    request = frame.decode_request(frame.encode_request(operation, client=b"c" * 16))
    reply = frame.decode_reply(frame.encode_reply(request, 9, 0, [b"one", b"two"]))
    assert reply == frame.Reply(operation, 0, b"onetwo")


@pytest.mark.parametrize(
    ("operation", "in_status"), [(2, True), (138, True), (160, True), (161, True), (128, False), (149, False)]
)
def test_refusals_travel_where_iggy_puts_them(operation, in_status):
    request = frame.decode_request(frame.encode_request(operation, client=b"c" * 16))
    raw = frame.encode_reply(request, 9, Status.STREAM_EXISTS, b"never sent")
    assert struct.unpack_from("<I", raw, 216)[0] == (Status.STREAM_EXISTS if in_status else 0)
    assert len(raw) == (256 if in_status else 268)
    assert frame.decode_reply(raw) == frame.Reply(operation, Status.STREAM_EXISTS, b"")


def test_a_reply_echoes_client_request_and_operation():
    request = frame.decode_request(request_frame(client=b"c" * 16))
    raw = frame.encode_reply(request, 9, 0)
    assert raw[160:176] == b"c" * 16
    assert struct.unpack_from("<QQ", raw, 176) == (9, 9)
    assert struct.unpack_from("<Q", raw, 200)[0] == 3
    assert raw[208] == Operation.NON_REPLICATED


def test_an_eviction_names_its_reason_and_versions():
    raw = frame.encode_eviction(b"c" * 16, Eviction.INCOMPATIBLE, 11, 10)
    assert len(raw) == 256
    assert frame.decode_reply(raw) is Eviction.INCOMPATIBLE
    assert raw[128:144] == b"c" * 16
    assert struct.unpack_from("<II", raw, 144) == (11, 10)
