"""Headers of records on the log that the folds read, and the ids they carry."""

import re
import struct
from string import ascii_lowercase, digits

from desk.stack.wire.iggy import Record

CONVERSATION = "gen_ai.conversation.id"  # text form of a 16-byte id
PRODUCER = "gen_ai.agent.id"
MEMORY_NAMESPACE = "agdx.mem.ns"  # already scoped
MEMORY_USER = "agdx.mem.user"
MEMORY_APP = "agdx.mem.app"
ENVELOPE = "agdx.av"  # present: the payload is a CBOR agent envelope
ADDRESSEE = "agdx.to"
CORRELATION = "agdx.corr"
PARENT = "agdx.parent_conv"
ROOT = "agdx.root_conv"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
COST_USD = "agdx.cost"

MAX_COUNT = 1 << 48  # no record counts more tokens or costs more micro-units than this
_POSITION = struct.Struct(">IIIQ")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TO_BASE_32 = str.maketrans(_CROCKFORD + _CROCKFORD.lower(), (digits + ascii_lowercase)[:32] * 2)
is_id_text = re.compile(r"[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}").fullmatch
"""Is a text the 26 characters of a 16-byte id (at most 128 bits)?"""


def text(record: Record, name: str) -> str | None:
    """A header's text, or None when it is missing or no text."""
    header = record.headers.get(name)
    if header is None or header[0] != "string":
        return None
    return header[1].decode("utf-8", "replace")


def number(record: Record, name: str) -> int | None:
    """A header's unsigned integer below MAX_COUNT, or None when it is missing, none or absurd."""
    kind, value = record.headers.get(name, ("", b""))
    if kind in ("u8", "u16", "u32", "u64", "u128"):
        found = int.from_bytes(value, "little")
        return found if found < MAX_COUNT else None
    return None


def cost_micros(record: Record) -> int | None:
    """The cost header in micro-units, or None."""
    kind, value = record.headers.get(COST_USD, ("", b""))
    if kind != "f64" or len(value) != 8:
        return None
    cost = struct.unpack("<d", value)[0] * 1_000_000
    return round(cost) if 0 <= cost < MAX_COUNT else None


def identity(record: Record, name: str) -> bytes | None:
    """A header's 16-byte id, written as text or as a number; None when it is missing or none."""
    header = record.headers.get(name)
    if header is None:
        return None
    kind, value = header
    if kind == "string":
        return id_bytes(value.decode("utf-8", "replace"))
    return value[::-1] if kind == "u128" and len(value) == 16 else None


def log_position(stream_id: int, topic_id: int, partition: int, offset: int) -> bytes:
    """A LogPosition: stream, topic, partition (u32) and offset (u64), big endian, 20 bytes."""
    return _POSITION.pack(stream_id, topic_id, partition, offset)


def id_text(identity: bytes) -> str:
    """A 16-byte id as 26 characters of Crockford's base 32 (a ULID's text)."""
    number = int.from_bytes(identity, "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def id_bytes(written: str) -> bytes | None:
    """The 16 bytes of such a text, or None when it is none."""
    if not is_id_text(written):
        return None
    return int(written.translate(_TO_BASE_32), 32).to_bytes(16, "big")
