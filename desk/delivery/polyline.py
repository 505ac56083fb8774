"""Encoded polylines, precision 5: a path of (lon, lat) degrees as a short text, and back.

The format is Google's "encoded polyline algorithm": differences of 1e-5 degree (about a metre), zigzag, base 64.
"""

from collections.abc import Iterable

Point = tuple[float, float]


def encode(path: Iterable[Point]) -> str:
    """The text of a path of (lon, lat) degrees."""
    out: list[str] = []
    before = [0, 0]
    for lon, lat in path:
        for axis, degrees in enumerate((lat, lon)):
            value = round(degrees * 1e5)
            step, before[axis] = value - before[axis], value
            number = ~(step << 1) if step < 0 else step << 1
            while number >= 0x20:
                out.append(chr((0x20 | (number & 0x1F)) + 63))
                number >>= 5
            out.append(chr(number + 63))
    return "".join(out)


def decode(text: str) -> list[Point]:
    """The (lon, lat) degrees of a text that `encode` gave."""
    numbers: list[int] = []
    number = shift = 0
    for char in text:
        bits = ord(char) - 63
        number |= (bits & 0x1F) << shift
        shift += 5
        if bits < 0x20:
            numbers.append(~(number >> 1) if number & 1 else number >> 1)
            number = shift = 0
    path: list[Point] = []
    lat = lon = 0
    for north, east in zip(numbers[::2], numbers[1::2], strict=True):
        lat, lon = lat + north, lon + east
        path.append((lon / 1e5, lat / 1e5))
    return path
