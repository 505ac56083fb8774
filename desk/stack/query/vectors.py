"""Embeddings as they are stored: scaled to length 1, as native doubles."""

import struct
from collections.abc import Sequence
from math import hypot
from operator import mul


def unit_vector(numbers: Sequence[float]) -> bytes:
    """A vector scaled to length 1 (or all zero)."""
    length = hypot(*numbers) or 1.0
    return struct.pack(f"{len(numbers)}d", *(x / length for x in numbers))


def distance(stored: bytes | None, wanted: bytes) -> float | None:
    """1 - cosine of two unit vectors; null when there is none or the lengths differ."""
    if stored is None or len(stored) != len(wanted):
        return None
    return 1.0 - sum(map(mul, memoryview(stored).cast("d"), memoryview(wanted).cast("d")))
