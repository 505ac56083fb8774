"""Whatever a record holds, projecting it neither fails the append nor spoils a reply, and a rebuild agrees."""

import asyncio
import json
import tempfile
from pathlib import Path

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.wire.iggy import KINDS
from tests.stack.banding import Bench
from tests.stack.viewing import STREAM, TOPIC, Views, agg

FIELDS = ["a", "b", "c", "t"]
NUMBERS = (
    st.integers(-3, 3)
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([2**63, -(2**63), 2**63 - 1, 1e308, 2**40_000])
)
TEXTS = st.text(max_size=4) | st.sampled_from(["1", "007", "true", "1e5", "\ud800", "\0", "x" * 300])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = (
    SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), SCALARS, max_size=2)
)
DOCUMENTS = st.dictionaries(st.sampled_from([*FIELDS, "embedding"]), VALUES, max_size=4) | VALUES


def as_json(value) -> bytes:
    try:
        return json.dumps(value).encode()
    except ValueError:  # an integer of too many digits
        return b'{"a": ' + b"9" * 5000 + b"}"


def as_cbor(value) -> bytes:
    try:
        return cbor2.dumps(value)
    except (cbor2.CBOREncodeError, UnicodeEncodeError):
        return b"\xff"


PAYLOADS = DOCUMENTS.map(as_json) | DOCUMENTS.map(as_cbor) | st.binary(max_size=20)
NAMES = st.sampled_from(
    ["agdx.ct", "agdx.sid", "agdx.av", "agdx.ref", "agdx.inline", "agdx.idx.a", "agdx.idx.new", "agdx.idx. x"]
) | st.sampled_from(["gen_ai.conversation.id", "agdx.idx.", "agdx.mem.ns"])
HEADERS = st.dictionaries(
    NAMES,
    st.tuples(
        st.sampled_from(KINDS),
        st.binary(max_size=9) | st.sampled_from([b"\x01", b"\x02", b"\x03", b"5", b"1.5"]),
    ),
    max_size=3,
) | st.sampled_from([{"agdx.ct": ("u8", b"\x01")}, {"agdx.ct": ("u8", b"\x03")}, {}])


@pytest.fixture(scope="module")
def views():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        views = Views(bench)
        views.project("a", "b", ("c", "/c", "int"), ("t", "/t", "text"), content_type="any")
        views.bind(notify=True)
        yield views
        views.assert_rebuilds()
        bench.close()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(PAYLOADS, HEADERS), min_size=1, max_size=4))
def test_any_record_can_be_appended_and_every_page_is_valid(views, records):
    views.bench.publish(STREAM, TOPIC, records)

    async def read() -> None:
        page = await views.rows(limit=5, order=[{"field": "__laser_offset", "dir": "desc"}])
        assert len(page) <= 5
        (count,) = await views.rows("count", aggregate={"funcs": [agg("count")]})
        assert count <= views.bench.log.head(STREAM, TOPIC, 0) + 1

    asyncio.run(read())
