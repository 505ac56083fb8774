"""Key-value and lease requests: field shapes, size limits, and the entry as replies carry it.

    get          namespace key if_none_match? min_position?            {Value: entry|null} | "NotModified"
    exists       namespace key                                         {Metadata: {version, expires_at_micros?, size_bytes}|null}
    scan         namespace bounds limit cursor?                        {Page: {entries, cursor?}}
    namespaces   -                                                     {Namespaces: [{namespace, entries}]}
    set          namespace session? key value expires_at_micros?       "Written"
    cas          ... and expect: {Match: version} | "Absent"           {Committed: {version}}
    cas_fenced   ... and fence_namespace fence_key fence_token         {Committed: {version}}
    delete       namespace session? key if_match?                      {Deleted: bool}
    delete_many  namespace bounds                                      {DeletedMany: n}
    expire       namespace key expires_at_micros?                      {Versioned: {version}}
    patch        namespace session? key patch if_match?                {Versioned: {version}}
    copy, move   namespace key to_namespace? to_key                    {Committed: {version}}
    lease        namespace key lease_ttl_micros holder_id subject_user_id?
                                               {Leased: {lease_token, granted_ttl_micros, position}}
    lease_renew  ... and lease_token                                   {Renewed: the same}
    release      namespace key lease_token holder_id                   {Released: bool}

All start with `v: 1`. bounds = prefix? start? end? key_contains? conversation? stream?
Times are epoch microseconds; keys and values are bytes; namespaces are opaque text.
"""

from collections.abc import Mapping
from typing import Any

from desk.stack.wire import agdx
from desk.stack.wire.shape import BYTES, ID16, MAP, TEXT, U32, U64, Kind, Shape, optional, shaped


def _expect(value: Any) -> int | None:
    """`{"Match": version}` as the version, "Absent" as None."""
    if value == "Absent":
        return None
    if type(value) is dict and len(value) == 1 and type(version := value.get("Match")) is int:
        return version
    raise ValueError


SESSION: Shape = {"stream": TEXT, "session": ID16}
_V: Shape = {"v": U32}
_KEYED: Shape = {"v": U32, "namespace": TEXT, "key": BYTES}
_SESSION: Shape = {"session": optional(shaped("a session reference", SESSION))}
_WRITE: Shape = {**_KEYED, "value": BYTES, "expires_at_micros": optional(U64)}
_EXPECT: Shape = {"expect": Kind('{"Match": version} or "Absent"', _expect)}
_BOUNDS: Shape = {
    "v": U32,
    "namespace": TEXT,
    "prefix": optional(BYTES),
    "start": optional(BYTES),
    "end": optional(BYTES),
    "key_contains": optional(TEXT),
    "conversation": optional(TEXT),
    "stream": optional(TEXT),
}
_COPY: Shape = {**_KEYED, "to_namespace": optional(TEXT), "to_key": BYTES}
_HOLDER: Shape = {**_KEYED, "holder_id": TEXT}

REQUESTS: Mapping[int, Shape] = {
    agdx.KV_GET: {**_KEYED, "if_none_match": optional(U64), "min_position": optional(MAP)},
    agdx.KV_EXISTS: _KEYED,
    agdx.KV_SCAN: {**_BOUNDS, "limit": U64, "cursor": optional(BYTES)},
    agdx.KV_NAMESPACES: _V,
    agdx.KV_SET: {**_WRITE, **_SESSION},
    agdx.KV_CAS: {**_WRITE, **_SESSION, **_EXPECT},
    agdx.KV_CAS_FENCED: {
        **_WRITE,
        **_EXPECT,
        "fence_namespace": TEXT,
        "fence_key": BYTES,
        "fence_token": U64,
    },
    agdx.KV_DELETE: {**_KEYED, **_SESSION, "if_match": optional(U64)},
    agdx.KV_DELETE_MANY: _BOUNDS,
    agdx.KV_EXPIRE: {**_KEYED, "expires_at_micros": optional(U64)},
    agdx.KV_PATCH: {**_KEYED, **_SESSION, "patch": BYTES, "if_match": optional(U64)},
    agdx.KV_COPY: _COPY,
    agdx.KV_MOVE: _COPY,
    agdx.KV_LEASE: {**_HOLDER, "lease_ttl_micros": U64, "subject_user_id": optional(U32)},
    agdx.KV_LEASE_RENEW: {
        **_HOLDER,
        "lease_token": U64,
        "lease_ttl_micros": U64,
        "subject_user_id": optional(U32),
    },
    agdx.KV_RELEASE: {**_HOLDER, "lease_token": U64},
}


def namespace_fault(namespace: str) -> str | None:
    """Why a namespace is refused, or None: not empty, at most 128 bytes, no ASCII control characters."""
    if not namespace:
        return "namespace must not be empty"
    if not namespace.isprintable() and any(c < " " or c == "\x7f" for c in namespace):
        return "namespace must not contain ASCII control characters"
    if len(namespace) > agdx.MAX_NAMESPACE_BYTES or (
        not namespace.isascii() and len(namespace.encode()) > agdx.MAX_NAMESPACE_BYTES
    ):
        return f"namespace is {len(namespace.encode())}B, exceeds cap {agdx.MAX_NAMESPACE_BYTES}B"
    return None


def entry(
    key: bytes,
    value: bytes,
    expires_us: int | None,
    version: int,
    scope: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One stored entry as get and scan carry it; version 0 means unversioned and is left out."""
    out: dict[str, Any] = {"key": key, "value": value}
    if expires_us is not None:
        out["expires_at_micros"] = expires_us
    if version:
        out["version"] = version
    if scope is not None:
        out["scope"] = scope
    if source is not None:
        out["source"] = source
    return out
