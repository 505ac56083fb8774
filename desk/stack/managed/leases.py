"""Leases with fencing: bounded locks whose token only ever grows, and writes that require a live one.

One row per (namespace, key) holds the fence, which never resets, and the holder while there is one.
Lease rows are apart from the key-value table: no get, scan or namespace listing shows them.
"""

from types import MappingProxyType
from typing import Any, NamedTuple

import apsw

from desk.stack.managed import rows
from desk.stack.managed.kv import check_expect, check_key, check_namespace, check_value
from desk.stack.managed.surface import Context, Request, Surface, SurfaceError
from desk.stack.wire import agdx, kv

SCHEMA = """
CREATE TABLE IF NOT EXISTS lease (
    namespace TEXT NOT NULL, key BLOB NOT NULL, fence INTEGER NOT NULL, holder TEXT NOT NULL,
    subject INTEGER NOT NULL, expires_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
"""


class Lease(NamedTuple):
    """A fence and who last held it; `alive` until it expires or is released."""

    fence: int
    holder: str
    subject: int
    alive: bool


class Leases(Surface):
    """Acquire, renew, release, and the fenced compare-and-swap."""

    name = "leases"
    schema = SCHEMA
    features = agdx.Feature.KV_CAS_FENCED | agdx.Feature.KV_FENCED_LEASES
    position = "kv"
    checks_first = True
    floatless = True
    shapes = MappingProxyType(
        {
            code: kv.REQUESTS[code]
            for code in (agdx.KV_LEASE, agdx.KV_LEASE_RENEW, agdx.KV_RELEASE, agdx.KV_CAS_FENCED)
        }
    )

    def acquire(self, request: Request, context: Context) -> Any:
        _check(request)
        _check_ttl(request)
        db, at = self.store.db, (request["namespace"], request["key"])
        lease = _find(db, *at, context.now_us)
        if lease and lease.alive:
            raise SurfaceError({"VersionConflict": {"current": lease.fence}})
        fence = lease.fence + 1 if lease else 1
        expires_us = context.now_us + request["lease_ttl_micros"]
        db.execute(
            "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?, ?, ?)",
            (*at, fence, request["holder_id"], _subject(request, context), expires_us),
        )
        return {"Leased": _granted(fence, request, context)}

    def renew(self, request: Request, context: Context) -> Any:
        _check(request)
        _check_ttl(request)
        db, at = self.store.db, (request["namespace"], request["key"])
        lease = _find(db, *at, context.now_us)
        if (
            lease is None
            or not lease.alive
            or lease.fence != request["lease_token"]
            or lease.holder != request["holder_id"]
            or lease.subject != _subject(request, context)
        ):
            raise SurfaceError("LeaseLost")
        db.execute(
            "UPDATE lease SET expires_us = ? WHERE namespace = ? AND key = ?",
            (context.now_us + request["lease_ttl_micros"], *at),
        )
        return {"Renewed": _granted(lease.fence, request, context)}

    def release(self, request: Request, context: Context) -> Any:
        _check(request)
        db, at = self.store.db, (request["namespace"], request["key"])
        lease = _find(db, *at, context.now_us)
        if lease is None or lease.fence != request["lease_token"]:
            raise SurfaceError("LeaseLost")
        if not lease.alive:
            return {"Released": False}
        if lease.holder != request["holder_id"]:
            raise SurfaceError("LeaseLost")
        db.execute("UPDATE lease SET expires_us = 0 WHERE namespace = ? AND key = ?", at)
        return {"Released": True}

    def cas_fenced(self, request: Request, context: Context) -> Any:
        for name in ("namespace", "fence_namespace"):
            check_namespace(request[name])
        for name in ("key", "fence_key"):
            check_key(request[name])
        check_value(request["value"])
        db, at = self.store.db, (request["namespace"], request["key"])
        lease = _find(db, request["fence_namespace"], request["fence_key"], context.now_us)
        if lease is None or not lease.alive or lease.fence != request["fence_token"]:
            raise SurfaceError("LeaseLost")
        check_expect(request.get("expect"), rows.peek(db, *at, context.now_us))
        version = rows.put(db, *at, request["value"], request.get("expires_at_micros"), context.now_us)
        return {"Committed": {"version": version}}

    mutations = MappingProxyType(
        {
            agdx.KV_LEASE: acquire,
            agdx.KV_LEASE_RENEW: renew,
            agdx.KV_RELEASE: release,
            agdx.KV_CAS_FENCED: cas_fenced,
        }
    )


def _find(db: apsw.Connection, namespace: str, key: bytes, now_us: int) -> Lease | None:
    found = db.execute(
        "SELECT fence, holder, subject, expires_us > ? FROM lease WHERE namespace = ? AND key = ?",
        (now_us, namespace, key),
    ).fetchone()
    return Lease._make(found) if found else None


def _check(request: Request) -> None:
    check_namespace(request["namespace"])
    check_key(request["key"])
    if not 1 <= len(request["holder_id"].encode()) <= agdx.MAX_HOLDER_ID_BYTES:
        raise SurfaceError({"InvalidKey": f"lease holder id must be 1..{agdx.MAX_HOLDER_ID_BYTES} bytes"})


def _check_ttl(request: Request) -> None:
    if not agdx.MIN_LEASE_TTL_US <= request["lease_ttl_micros"] <= agdx.MAX_LEASE_TTL_US:
        raise SurfaceError({"InvalidKey": "lease ttl must be 1 second to 5 minutes"})


def _subject(request: Request, context: Context) -> int:
    return request.get("subject_user_id", context.caller.user_id)


def _granted(fence: int, request: Request, context: Context) -> dict[str, Any]:
    assert context.position is not None  # a mutation always has one
    return {
        "lease_token": fence,
        "granted_ttl_micros": request["lease_ttl_micros"],
        "position": context.position.wire(),
    }
