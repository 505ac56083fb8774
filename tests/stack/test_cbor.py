"""The band's CBOR: every golden file re-encodes byte for byte, and hostile bytes end as one DecodeError."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.stack.wire import cbor
from tests.stack.sdist import sdist


def test_every_golden_file_re_encodes_byte_for_byte():
    files = sorted((sdist() / "wire" / "fixtures").glob("*.bin"))
    assert len(files) == 205
    different = [f.name for f in files if cbor.dumps(cbor.loads(f.read_bytes())) != f.read_bytes()]
    assert different == []


@given(st.floats(allow_nan=False))
def test_a_float_is_written_in_the_narrowest_lossless_width(value):
    written = cbor.dumps(value)
    back = cbor.loads(written)
    assert back == value and math.copysign(1, back) == math.copysign(1, value)
    assert len(written) in (3, 5, 9)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**128 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_what_is_written_reads_back_the_same(value):
    assert cbor.loads(cbor.dumps(value)) == value


@given(st.binary(max_size=200))
def test_rubbish_is_a_decode_error_or_a_value(data):
    with contextlib.suppress(cbor.DecodeError):
        cbor.loads(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\x02",  # a second item
        b"\xa2\x61a\x01\x61a\x02",  # a key twice
        b"\xa1\x01\x02",  # a key that is no text
        b"\xd8\x1c\x80",  # shared references
        b"\xd8\x23\x63abc",  # a regular expression
        b"\x81" * 1000,  # too deep
        b"\x9b" + b"\xff" * 8,  # a list longer than memory
        b"\x5b" + b"\xff" * 8,  # bytes longer than memory
    ],
    ids=["empty", "two-items", "twice", "int-key", "shared", "regexp", "deep", "long-list", "long-bytes"],
)
def test_what_the_band_never_sends_is_refused(data):
    with pytest.raises(cbor.DecodeError):
        cbor.loads(data)
