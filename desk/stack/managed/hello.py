"""What hello announces: only what the surfaces present really serve."""

from collections.abc import Iterable, Mapping
from typing import Any

from desk.stack.managed.surface import Surface
from desk.stack.wire import agdx

RESOURCE_ID = bytes(15) + b"\x0a"  # any nonzero 16 bytes, the same for every start
VERSION = "1"
REQUIRED = ("query", "control", "kv", "fork")  # version fields sent even when 0
OPTIONAL = ("agent", "graph", "checkpoint", "filter")
LIMITS = {
    "max_query_rows": 1_000_000,
    "max_query_bytes": agdx.MAX_FRAME_BYTES,
    "max_scan_bytes": 1 << 40,
    "max_query_micros": 25_000_000,
    "max_concurrent_queries": 64,
    "max_schema_fields": 4096,
    "max_materialization_file_bytes": 0,
}


def announce(surfaces: Iterable[Surface], opened_us: int) -> dict[str, Any]:
    """The BackendAnnounce: op versions, feature bits, one backend, the ops topics. `opened_us` is epoch micros."""
    surfaces = list(surfaces)
    served: dict[str, int] = {}
    features = 0
    for surface in surfaces:
        served.update(surface.versions)
        features |= surface.features
    versions = {name: served.get(name, 0) for name in REQUIRED}
    versions.update({name: served[name] for name in OPTIONAL if served.get(name)})
    if features:
        versions["features"] = int(features)
    query = next((block for surface in surfaces if (block := surface.query_block())), None)
    return {"versions": versions, "backends": [_backend(query, opened_us)], "topology": _topology()}


def _backend(query: Mapping[str, Any] | None, opened_us: int) -> dict[str, Any]:
    """The one backend's descriptor; without a query surface it carries no `query` block."""
    backend: dict[str, Any] = {
        "descriptor_version": 1,
        "resource_id": RESOURCE_ID,
        "mode": "operational",
        "label": "Embedded stack",
        "implementation": {"kind": "sqlite", "version": VERSION},
        "observed_backend_generation": 1,
        "runtime_configuration_revision": 1,
        "desired_state": "enabled",
        "observed_state": "ready",
        "readiness": {"ready": True, "reasons": [], "observed_at_micros": opened_us},
        "materialization": [],
    }
    if query:
        backend["query"] = query
    backend["schema"] = {"logical_schema": False, "arrow_ipc_stream": False, "schema_evolution": False}
    backend["maintenance"] = {
        "expire_snapshots": False,
        "remove_orphan_files": False,
        "compact_data_files": False,
    }
    backend["limits"] = LIMITS
    return backend


def _topology() -> dict[str, str]:
    return {
        "ops_stream": agdx.OPS_STREAM,
        "control_topic": agdx.CONTROL_TOPIC,
        "dlq_topic": agdx.DLQ_TOPIC,
        "changes_topic": agdx.CHANGES_TOPIC,
        "kv_mutations_topic": agdx.KV_TOPIC,
        "fork_mutations_topic": agdx.FORK_TOPIC,
        "graph_mutations_topic": agdx.GRAPH_TOPIC,
        "checkpoint_mutations_topic": agdx.CHECKPOINT_TOPIC,
    }
