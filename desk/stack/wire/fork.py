"""Forks: requests, ids, limits.

    create   fork_id parent? kind: "severed"|"continuous" tables?      {Created: info}
    delete   fork_id                                                   {Deleted: existed}
    promote  fork_id                                                   {Promoted: {rows}}
    list                                                               {List: [info]}
    put      fork_id table partition_id offset projection_id projection_version fields?: {name: text}
             metadata?: {name: text} payload? embedding?: JSON text, tombstone     "Written"

All start with `v: 1`. info = {fork_id, parent?, kind, user_id, status: open|promoted|squashed, created_at_micros,
row_count}. A fork id is bare, or `stream:<stream>/<local>`.
"""

from collections.abc import Mapping

from desk.stack.wire import agdx
from desk.stack.wire.shape import BOOL, BYTES, LIST, MAP, TEXT, U32, U64, Shape, optional

KINDS = SEVERED, CONTINUOUS = "severed", "continuous"
MAX_ID_BYTES = 128
MAX_OFFSET = (1 << 63) - 1
ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
REQUESTS: Mapping[int, Shape] = {
    agdx.FORK_CREATE: {
        "v": U32,
        "fork_id": TEXT,
        "parent": optional(TEXT),
        "kind": optional(TEXT),
        "tables": optional(LIST),
    },
    agdx.FORK_DELETE: {"v": U32, "fork_id": TEXT},
    agdx.FORK_PROMOTE: {"v": U32, "fork_id": TEXT},
    agdx.FORK_LIST: {"v": U32},
    agdx.FORK_PUT: {
        "v": U32,
        "fork_id": TEXT,
        "table": TEXT,
        "partition_id": U32,
        "offset": U64,
        "fields": optional(MAP),
        "payload": optional(BYTES),
        "embedding": optional(TEXT),
        "tombstone": optional(BOOL),
    },
}


def id_fault(fork_id: str) -> str | None:
    """What is wrong with a fork id, in words."""
    parts = [fork_id]
    if fork_id.startswith("stream:"):
        parts = fork_id.removeprefix("stream:").split("/", 1)
        if len(parts) != 2:
            return "a stream-scoped fork id needs a local part"
    if len(fork_id.encode("utf-8", "replace")) > MAX_ID_BYTES:
        return f"a fork id has at most {MAX_ID_BYTES} bytes"
    if not all(part and ID_CHARACTERS.issuperset(part) for part in parts):
        return "a fork id is made of letters, digits, - _ and ."
    return None
