"""Every decoder, fold and command against bytes that nobody means well by; what fuzzing found stays found."""

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stack.wire.frame import BadFrame, Splitter, encode_request
from fuzz import targets, whole
from fuzz.seeds import seeds

FOUND = Path(__file__).parents[2] / "fuzz" / "found"


def found() -> list[Path]:
    """Inputs that once broke a target, named `<target>-<what>`."""
    return sorted(path for path in FOUND.iterdir() if path.is_file()) if FOUND.is_dir() else []


@pytest.fixture(scope="module", autouse=True)
def ended():
    yield
    while whole._stack:
        whole._stack.pop().close()


@pytest.mark.parametrize("path", found(), ids=lambda path: path.name)
def test_what_once_broke_it_does_not_any_more(path: Path) -> None:
    targets.TARGETS[path.name.partition("-")[0]](path.read_bytes())


@pytest.mark.parametrize("target", targets.TARGETS)
def test_what_clients_send_with_some_bytes_changed(target: str) -> None:
    chance = random.Random(3)
    work = targets.TARGETS[target]
    given = list(seeds(target, None))
    for seed in given:
        work(seed)
    for _ in range(300):
        data = bytearray(chance.choice(given))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(3):
                case 0:
                    data[at:at] = chance.randbytes(chance.randint(1, 9))
                case 1:
                    del data[at : at + chance.randint(1, 9)]
                case 2:
                    data[at : at + 1] = chance.choice((b"\0", b"\xff", b"\x7f", b"\x80"))
        work(bytes(data))


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=400))
@pytest.mark.parametrize("target", ["frames", "bodies", "cbor"])
def test_any_bytes(target: str, data: bytes) -> None:
    targets.TARGETS[target](data)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=2_000), cuts=st.lists(st.integers(0, 2_000), max_size=8))
def test_frames_are_the_same_however_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    whole = b"".join(encode_request(2, 1, data[:n], client=bytes(16)) for n in (0, len(data) // 2, len(data)))

    def split(pieces: list[bytes]) -> list[bytes]:
        splitter, out = Splitter(1 << 20), []
        for piece in pieces:
            splitter.feed(piece)
            while (one := splitter.next()) is not None:
                out.append(one)
        return out

    places = sorted({0, len(whole), *(cut % len(whole) for cut in cuts)})
    pieces = [whole[a:b] for a, b in itertools.pairwise(places)]
    assert split(pieces) == split([whole])
    assert len(split([whole])) == 3
    with pytest.raises(BadFrame):
        split([b"\0" * 256])
