"""Embeddings: what counts as one, and how one is stored: scaled to length 1, as native doubles."""

import struct
from collections.abc import Sequence
from math import hypot
from operator import mul
from typing import Any

LARGEST = 1e150  # squares of larger numbers overflow


def is_vector(value: Any) -> bool:
    """A list of finite numbers of sane size, at least one."""
    return (
        type(value) is list
        and len(value) > 0
        and all(type(x) in (int, float) and -LARGEST <= x <= LARGEST for x in value)
    )


def unit_vector(numbers: Sequence[float]) -> bytes:
    """A vector scaled to length 1 (or all zero)."""
    length = hypot(*numbers) or 1.0
    return struct.pack(f"{len(numbers)}d", *(x / length for x in numbers))


def distance(stored: bytes | None, wanted: bytes) -> float | None:
    """1 - cosine of two unit vectors; null when there is none or the lengths differ."""
    if stored is None or len(stored) != len(wanted):
        return None
    return 1.0 - sum(map(mul, memoryview(stored).cast("d"), memoryview(wanted).cast("d")))
