"""Writes are told from reads and named the same in every run, from the bytes alone."""

import struct

import cbor2
import pytest

from desk.proving import frames
from desk.proving.frames import HEADER, Frames, Write, code_of, write_of
from desk.proving.operations import LISTED, unlisted
from desk.stack.wire import agdx
from desk.stack.wire.codes import REPLICATED, Code, Operation


def request(operation: int, body: bytes = b"", code: int = 0) -> bytes:
    header = bytearray(HEADER)
    struct.pack_into("<I", header, 48, HEADER + len(body))
    header[60], header[176] = 5, operation
    struct.pack_into("<I", header, 196, code)
    return bytes(header) + body


def name(text: str) -> bytes:
    return bytes([2, len(text)]) + text.encode()


def number(value: int) -> bytes:
    return bytes([1, 4]) + value.to_bytes(4, "little")


def managed(code: int, **fields: object) -> bytes:
    payload = cbor2.dumps({"v": 1, **fields})
    return request(2, cbor2.dumps({"v": 1, "operation_id": 7, "payload": payload}), code)


def acknowledgement(offset: int, partition: int = 3) -> bytes:
    body = b"\x02" + name("resolver") + name("s") + name("agent.sessions")
    return request(161, body + b"\x01" + partition.to_bytes(4, "little") + struct.pack("<QB", offset, 1))


@pytest.mark.parametrize(
    ("frame", "write"),
    [
        (request(160, struct.pack("<I", 9) + name("s") + name("desk.events")), Write("send", "desk.events")),
        (request(160, struct.pack("<I", 9) + name("s") + number(4)), Write("send", "topic 4")),
        (acknowledgement(4), Write("acknowledge", "agent.sessions")),
        (request(148, name("s") + name("agent.sessions") + name("billing")), Write("join group", "billing")),
        (managed(1_000_306, namespace="stream:s/ledger", key=b"t-1:x"), Write("cas", "ledger t-1:x")),
        (managed(1_000_301, namespace="ledger", key=b"t-1:x"), Write("set", "ledger t-1:x")),
        (managed(1_000_020, ops=[]), Write("command", "1000020")),
    ],
)
def test_a_write_has_a_name(frame: bytes, write: Write) -> None:
    assert write_of(frame) == write


def test_an_acknowledgement_knows_how_many_records_it_covers() -> None:
    write = write_of(acknowledgement(4, partition=2))
    assert (write.upto, write.partition) == (5, 2)


def test_who_says_that_it_is_up_is_known() -> None:
    body = struct.pack("<I", 9) + name("s") + name("desk.events")
    assert write_of(request(160, body + b'{"kind": "agent_up"}')).up
    assert not write_of(request(160, body + b'{"kind": "closed"}')).up


def test_a_request_has_a_number() -> None:
    assert code_of(acknowledgement(4)) == "operation 161"
    assert code_of(managed(1_000_300)) == "code 1000300"


@pytest.mark.parametrize("code", [1, 100, 120, 606, 1_000_000, 1_000_002, 1_000_300, 1_000_302, 1_000_711])
def test_a_read_is_none(code: int) -> None:
    assert write_of(request(2, b"", code)) is None


@pytest.mark.parametrize("operation", [1, 3])
def test_what_ends_with_the_connection_is_none(operation: int) -> None:
    assert write_of(request(operation)) is None


def test_frames_come_whole_whatever_the_pieces() -> None:
    sent = [request(160, b"x" * size) for size in (0, 1, 5000)]
    whole = Frames()
    data = b"".join(sent)
    got = [frame for at in range(0, len(data), 97) for frame in whole.feed(data[at : at + 97])]
    assert got == sent


def test_the_protocol_lists_what_the_stack_knows_and_what_a_frame_is_told_by() -> None:
    operations = {*REPLICATED, *Operation}
    assert {f"operation {number}" for number in operations} == {
        x for x in LISTED if x.startswith("operation")
    }
    managed = {n for n in vars(agdx).values() if isinstance(n, int) and agdx.BASE <= n < agdx.BASE + 1000}
    assert {agdx.KV_CAS, agdx.SESSION_CHANGES} <= managed and managed >= agdx.MUTATION_CODES
    codes = {*set(Code) - set(REPLICATED.values()), *managed, *frames._READS, *frames._KV}
    assert unlisted(f"code {int(number)}" for number in codes) == []


def test_what_the_protocol_does_not_list_is_told() -> None:
    assert unlisted(["operation 160", "code 1000317", "operation 163", "code 100"]) == [
        "code 1000317",
        "operation 163",
    ]
