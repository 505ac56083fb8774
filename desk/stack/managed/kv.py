"""The key-value surface: the sixteen operations but the four of leases. What each answers is in wire/kv.py."""

import json
from types import MappingProxyType
from typing import Any

from desk.stack.managed import rows
from desk.stack.managed.surface import Context, Request, Surface, SurfaceError
from desk.stack.wire import agdx, cbor, kv
from desk.stack.wire.records import id_text

MAX_PAGE_BYTES = 32 << 20  # a scan page ends early rather than outgrow a frame
SWEEP_EVERY = 256  # mutations between sweeps of expired rows
OWN = frozenset(kv.REQUESTS) - {agdx.KV_LEASE, agdx.KV_LEASE_RENEW, agdx.KV_RELEASE, agdx.KV_CAS_FENCED}


def check_namespace(namespace: str) -> None:
    """SurfaceError InvalidNamespace unless the wire allows the name."""
    fault = kv.namespace_fault(namespace)
    if fault:
        raise SurfaceError({"InvalidNamespace": fault})


def check_key(key: bytes) -> None:
    """SurfaceError unless a key has 1..512 bytes."""
    if not key:
        raise SurfaceError({"InvalidKey": "key is empty"})
    if len(key) > agdx.MAX_KEY_BYTES:
        raise too_large("key", len(key), agdx.MAX_KEY_BYTES)


def check_value(value: bytes) -> None:
    """SurfaceError unless a value has at most 8 MiB."""
    if len(value) > agdx.MAX_VALUE_BYTES:
        raise too_large("value", len(value), agdx.MAX_VALUE_BYTES)


def too_large(what: str, size: int, cap: int) -> SurfaceError:
    """The refusal of something over its size limit."""
    return SurfaceError({"TooLarge": {"what": what, "size": size, "cap": cap}})


def conflict(row: rows.Row | None) -> SurfaceError:
    """The refusal of a precondition, with the version that is there (or null)."""
    return SurfaceError({"VersionConflict": {"current": row.version if row else None}})


def check_expect(expect: int | None, row: rows.Row | None) -> None:
    """SurfaceError VersionConflict unless the row is absent (None) or has the expected version."""
    if (row.version if row else None) != expect:
        raise conflict(row)


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386: a patch merged into a JSON document."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


class KeyValue(Surface):
    """Get, set, scan and the rest over the `kv` table."""

    name = "kv"
    schema = rows.SCHEMA
    versions = MappingProxyType({"kv": 1})
    features = agdx.Feature.KV_CAS
    position = "kv"
    checks_first = True
    floatless = True
    shapes = MappingProxyType({code: kv.REQUESTS[code] for code in OWN})

    def reload(self) -> None:
        rows.prepare(self.store.db)

    def get(self, request: Request, context: Context) -> Any:
        namespace, key = request["namespace"], request["key"]
        check_namespace(namespace)
        check_key(key)
        required = request.get("min_position")
        if required is not None and not (context.position and context.position.covers(required)):
            raise SurfaceError({"Stale": {"required": required}})
        row = rows.peek(self.store.db, namespace, key, context.now_us)
        if row is None:
            return {"Value": None}
        if request.get("if_none_match") == row.version:
            return "NotModified"
        return {"Value": _entry(key, row.value, row.version, row.expires_us, row.scope, row.source)}

    def exists(self, request: Request, context: Context) -> Any:
        check_namespace(request["namespace"])
        check_key(request["key"])
        row = rows.peek(self.store.db, request["namespace"], request["key"], context.now_us)
        if row is None:
            return {"Metadata": None}
        metadata: dict[str, int] = {"version": row.version}
        if row.expires_us is not None:
            metadata["expires_at_micros"] = row.expires_us
        metadata["size_bytes"] = len(row.value)
        return {"Metadata": metadata}

    def scan(self, request: Request, context: Context) -> Any:
        check_namespace(request["namespace"])
        limit = request["limit"] or agdx.DEFAULT_SCAN_LIMIT
        if limit > agdx.MAX_SCAN_LIMIT:
            raise too_large("limit", limit, agdx.MAX_SCAN_LIMIT)
        entries: list[dict[str, Any]] = []
        size, more = 0, False
        found = rows.scan(self.store.db, request, request.get("cursor"), limit + 1, context.now_us)
        for key, value, version, expires_us, scope, source in found:
            if len(entries) == limit or size > MAX_PAGE_BYTES:
                more = True
                break
            size += len(key) + len(value)
            entries.append(_entry(key, value, version, expires_us, scope, source))
        page: dict[str, Any] = {"entries": entries}
        if more:
            page["cursor"] = entries[-1]["key"]
        return {"Page": page}

    def namespaces(self, request: Request, context: Context) -> Any:
        found = rows.namespaces(self.store.db, context.now_us)
        return {"Namespaces": [{"namespace": name, "entries": count} for name, count in found]}

    def set(self, request: Request, context: Context) -> Any:
        self._check_write(request, context)
        self._write(request, context, request["value"], request.get("expires_at_micros"))
        return "Written"

    def cas(self, request: Request, context: Context) -> Any:
        self._check_write(request, context)
        row = rows.peek(self.store.db, request["namespace"], request["key"], context.now_us)
        check_expect(request.get("expect"), row)
        version = self._write(request, context, request["value"], request.get("expires_at_micros"))
        return {"Committed": {"version": version}}

    def delete(self, request: Request, context: Context) -> Any:
        row = self._row(request, context)
        check_session(request, context, request["namespace"])
        if request.get("if_match") is not None and (row is None or row.version != request["if_match"]):
            raise conflict(row)
        rows.drop(self.store.db, request["namespace"], request["key"])
        if row is not None:
            _link(request, context)
        return {"Deleted": row is not None}

    def delete_many(self, request: Request, context: Context) -> Any:
        check_namespace(request["namespace"])
        return {"DeletedMany": rows.drop_many(self.store.db, request)}

    def expire(self, request: Request, context: Context) -> Any:
        row = self._row(request, context)
        if row is None:
            raise SurfaceError("NotFound")
        rows.set_expiry(self.store.db, request["namespace"], request["key"], request.get("expires_at_micros"))
        return {"Versioned": {"version": row.version}}

    def patch(self, request: Request, context: Context) -> Any:
        row = self._row(request, context)
        check_session(request, context, request["namespace"])
        if row is None:
            raise SurfaceError("NotFound")
        if request.get("if_match") is not None and request["if_match"] != row.version:
            raise conflict(row)
        try:
            merged = merge_patch(json.loads(row.value), json.loads(request["patch"]))
            value = json.dumps(merged, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise SurfaceError({"Backend": f"patch needs a JSON value and a JSON patch: {error}"}) from None
        check_value(value)
        return {"Versioned": {"version": self._write(request, context, value, row.expires_us, row.scope)}}

    def copy(self, request: Request, context: Context) -> Any:
        return self._copy(request, context, move=False)

    def move(self, request: Request, context: Context) -> Any:
        return self._copy(request, context, move=True)

    mutations = MappingProxyType(
        {
            agdx.KV_SET: set,
            agdx.KV_CAS: cas,
            agdx.KV_DELETE: delete,
            agdx.KV_DELETE_MANY: delete_many,
            agdx.KV_EXPIRE: expire,
            agdx.KV_PATCH: patch,
            agdx.KV_COPY: copy,
            agdx.KV_MOVE: move,
        }
    )
    barrier_reads = MappingProxyType(
        {
            agdx.KV_GET: get,
            agdx.KV_EXISTS: exists,
            agdx.KV_SCAN: scan,
            agdx.KV_NAMESPACES: namespaces,
        }
    )

    def _row(self, request: Request, context: Context) -> rows.Row | None:
        check_namespace(request["namespace"])
        check_key(request["key"])
        return rows.peek(self.store.db, request["namespace"], request["key"], context.now_us)

    def _check_write(self, request: Request, context: Context) -> None:
        check_namespace(request["namespace"])
        check_key(request["key"])
        check_value(request["value"])
        check_session(request, context, request["namespace"])

    def _write(
        self,
        request: Request,
        context: Context,
        value: bytes,
        expires_us: int | None,
        scope: bytes | None = None,
    ) -> int:
        """Put a row; a session reference stamps its conversation on it and links it to the session."""
        kept = cbor.loads(scope) if scope else None
        if "session" in request:
            kept = {**(kept or {}), "conversation": id_text(request["session"]["session"])}
        version = rows.put(
            self.store.db, request["namespace"], request["key"], value, expires_us, context.now_us, kept
        )
        _link(request, context)
        if context.position and context.position.offset % SWEEP_EVERY == SWEEP_EVERY - 1:
            rows.sweep(self.store.db, context.now_us)
        return version

    def _copy(self, request: Request, context: Context, *, move: bool) -> Any:
        row = self._row(request, context)
        target = request.get("to_namespace", request["namespace"]), request["to_key"]
        check_namespace(target[0])
        check_key(target[1])
        if row is None:
            raise SurfaceError("NotFound")
        version = rows.put(self.store.db, *target, row.value, row.expires_us, context.now_us)
        if move and target != (request["namespace"], request["key"]):
            rows.drop(self.store.db, request["namespace"], request["key"])
        return {"Committed": {"version": version}}


def check_session(request: Request, context: Context, name: str) -> None:
    """SurfaceError when a session reference names another stream than the scoped name is in."""
    session = request.get("session")
    if session is not None and (fault := stream_fault(name, session["stream"])):
        raise SurfaceError({"InvalidNamespace": fault})


def stream_fault(name: str, stream: str) -> str | None:
    """Why a name scoped as `stream:<stream>/<name>` cannot be written in a session of `stream`, or None."""
    if name.startswith("stream:") and not name.startswith(f"stream:{stream}/"):
        return f"`{name}` is not of the session's stream `{stream}`"
    return None


def _link(request: Request, context: Context) -> None:
    session, sessions = request.get("session"), context.surface("sessions")
    if session is not None and sessions is not None:
        item = request["key"].decode("utf-8", "backslashreplace")
        sessions.link(session, "kv", request["namespace"], item, context)


def _entry(
    key: bytes,
    value: bytes,
    version: int,
    expires_us: int | None,
    scope: bytes | None,
    source: bytes | None,
) -> dict[str, Any]:
    return kv.entry(
        key,
        value,
        expires_us,
        version,
        cbor.loads(scope) if scope else None,
        cbor.loads(source) if source else None,
    )
