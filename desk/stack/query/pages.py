"""Pages: what a cursor remembers.

A cursor is opaque to clients: the sequence number, the clock and the columns the first page saw, where the next
page starts, and a digest of the query it belongs to.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from desk.stack.query.compile import Page
from desk.stack.query.kinds import I64_MAX
from desk.stack.wire import cbor
from desk.stack.wire.query import invalid

_CURSOR = struct.Struct(">QQQQQ8s")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page starts: after row `after` (0: none), or at position `skip`."""

    upto: int
    now_us: int
    after: int
    skip: int
    columns: int  # the places of columns below this one: fields that came later are not on its pages

    def encode(self, digest: bytes) -> str:
        packed = _CURSOR.pack(self.upto, self.now_us, self.after, self.skip, self.columns, digest)
        return base64.urlsafe_b64encode(packed).decode()

    @classmethod
    def decode(cls, text: str, digest: bytes) -> "Cursor":
        """Raises QueryFault for text that is no cursor of the query with this digest."""
        try:
            *numbers, made_for = _CURSOR.unpack(base64.b64decode(text, altchars=b"-_", validate=True))
        except (struct.error, binascii.Error, ValueError):
            raise invalid("the cursor is not one this stack gave") from None
        if max(numbers) > I64_MAX:
            raise invalid("the cursor is not one this stack gave")
        if made_for != digest:
            raise invalid("the cursor belongs to another query")
        return cls(*numbers)

    def page(self, limit: int) -> Page:
        return Page(limit, self.skip, self.after or None)


def digest(query: Mapping[str, Any]) -> bytes:
    """What makes two requests the same query: everything but identity, page and deadline."""
    kept = {k: v for k, v in query.items() if k not in ("execution_id", "page", "deadline_micros")}
    return hashlib.blake2b(cbor.dumps(kept), digest_size=8).digest()
