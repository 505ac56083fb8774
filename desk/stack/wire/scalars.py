"""Scalars and shared encodings of request and reply bodies, little-endian."""

import struct
from typing import NoReturn

from desk.stack.wire.codes import Refused, Status
from desk.stack.wire.iggy import Headers, decode_headers, encode_headers

Identifier = int | str
"""A stream, topic, group, consumer or user: its number or its name."""

U32 = struct.Struct("<I")
U64 = struct.Struct("<Q")
_BY_NUMBER, _BY_NAME = 1, 2


class Reader:
    """Takes values off a body from front to back; anything cut or odd is Refused(INVALID_COMMAND)."""

    __slots__ = ("at", "body")

    def __init__(self, body: bytes, at: int = 0) -> None:
        self.body = body
        self.at = at

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.body):
            raise Refused(Status.INVALID_COMMAND)
        value = self.body[self.at : end]
        self.at = end
        return value

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return U32.unpack(self.take(4))[0]

    def u64(self) -> int:
        return U64.unpack(self.take(8))[0]

    def short_text(self) -> str:
        """u8 length, UTF-8; may be empty."""
        return _text(self.take(self.u8()))

    def name(self) -> str:
        """u8 length 1..255, UTF-8."""
        return self.short_text() or _refuse()

    def identifier(self) -> Identifier:
        """u8 kind, u8 length, value."""
        kind, size = self.u8(), self.u8()
        value = self.take(size)
        if kind == _BY_NUMBER and size == 4:
            return U32.unpack(value)[0]
        if kind == _BY_NAME and size:
            return _text(value)
        return _refuse()

    def optional_partition(self) -> int | None:
        """u8 present, u32; always five bytes."""
        present, value = self.u8(), self.u32()
        return value if present == 1 else None

    def options(self) -> bytes:
        """A TLV block that runs to the end of the body, checked; it stays raw, unknown keys included."""
        block = self.take(len(self.body) - self.at)
        if encode_headers(decode_headers(block)) != block:
            raise Refused(Status.INVALID_COMMAND)
        return block

    def end(self) -> None:
        """Nothing may be left."""
        if self.at != len(self.body):
            raise Refused(Status.INVALID_COMMAND)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _refuse()


def _refuse() -> NoReturn:
    raise Refused(Status.INVALID_COMMAND)


def name(text: str) -> bytes:
    """u8 length, UTF-8."""
    value = text.encode()
    return bytes((len(value),)) + value


def block(value: bytes) -> bytes:
    """u32 length, bytes."""
    return U32.pack(len(value)) + value


def identifier(value: Identifier) -> bytes:
    """What Reader.identifier reads."""
    if isinstance(value, int):
        return bytes((_BY_NUMBER, 4)) + U32.pack(value)
    return bytes((_BY_NAME,)) + name(value)


def option_number(options: Headers, key: str) -> int | None:
    """A numeric option's value, None when it is not set."""
    found = options.get(key)
    return int.from_bytes(found[1], "little") if found else None
