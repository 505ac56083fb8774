"""Headers of records on the log that the folds read, and the ids they carry."""

from collections.abc import Mapping

from desk.stack.wire.iggy import Record

CONVERSATION = "gen_ai.conversation.id"  # text form of a 16-byte id
PRODUCER = "gen_ai.agent.id"
MEMORY_NAMESPACE = "agdx.mem.ns"  # already scoped
MEMORY_USER = "agdx.mem.user"
MEMORY_APP = "agdx.mem.app"
ENVELOPE = "agdx.av"  # present: the payload is a CBOR agent envelope
ADDRESSEE = "agdx.to"

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES: Mapping[str, int] = {
    **{c: i for i, c in enumerate(_CROCKFORD)},
    **{c.lower(): i for i, c in enumerate(_CROCKFORD)},
}


def text(record: Record, name: str) -> str | None:
    """A header's text, or None when it is missing or no text."""
    header = record.headers.get(name)
    if header is None or header[0] != "string":
        return None
    return header[1].decode("utf-8", "replace")


def id_text(identity: bytes) -> str:
    """A 16-byte id as 26 characters of Crockford's base 32 (a ULID's text)."""
    number = int.from_bytes(identity, "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def id_bytes(written: str) -> bytes | None:
    """The 16 bytes of such a text, or None when it is none."""
    if len(written) != 26:
        return None
    number = 0
    for character in written:
        value = _VALUES.get(character)
        if value is None:
            return None
        number = number << 5 | value
    return number.to_bytes(17, "big")[1:] if number < 1 << 128 else None
