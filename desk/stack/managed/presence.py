"""Presence: the metadata a connection advertises, kept while it lives and listed for whoever looks for it.

Held in memory on purpose: it belongs to connections, and those do not survive the stack.
"""

from types import MappingProxyType
from typing import Any

from desk.stack.managed.surface import Bare, CommandError, Context, Request, Surface
from desk.stack.wire import agdx
from desk.stack.wire.shape import BOOL, U32, optional

TCP = 1  # the transport code of every connection here


class Presence(Surface):
    """Set and list client metadata."""

    name = "presence"
    shapes = MappingProxyType(
        {
            agdx.LIST_CLIENT_METADATA: {
                "v": U32,
                "with_metadata_only": optional(BOOL),
                "user_id": optional(U32),
                "after_client_id": optional(U32),
                "limit": U32,
            }
        }
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._clients: dict[int, dict[str, Any]] = {}

    def greeted(self, context: Context) -> None:
        """Remember every connection, also one that advertises nothing: a full listing shows it."""
        caller = context.caller
        if caller.client_id not in self._clients:
            self._clients[caller.client_id] = {
                "client_id": caller.client_id,
                "user_id": caller.user_id,
                "transport": TCP,
                "address": caller.address,
                "consumer_groups_count": 0,
            }

    def advertise(self, body: bytes, context: Context) -> bytes:
        """Keep a connection's metadata; an empty body clears it."""
        if len(body) > agdx.MAX_CLIENT_METADATA_BYTES:
            raise CommandError("too_large", f"client metadata exceeds {agdx.MAX_CLIENT_METADATA_BYTES}B")
        self.greeted(context)
        client = self._clients[context.caller.client_id]
        client.pop("metadata", None)
        if body:
            client["metadata"] = body
        return b""

    def list(self, request: Request, context: Context) -> Any:
        """One page of connections in the order of their ids."""
        self.greeted(context)
        found = [
            client
            for _, client in sorted(self._clients.items())
            if client["client_id"] > request.get("after_client_id", -1)
            and ("metadata" in client or not request.get("with_metadata_only"))
            and request.get("user_id") in (None, client["user_id"])
        ]
        limit = max(1, min(request["limit"], agdx.MAX_PAGE_SIZE))
        page: dict[str, Any] = {"clients": found[:limit]}
        if len(found) > limit:
            page["next_cursor"] = found[limit - 1]["client_id"]
        return Bare(page)

    raw = MappingProxyType({agdx.SET_CLIENT_METADATA: advertise})
    plain = MappingProxyType({agdx.LIST_CLIENT_METADATA: list})

    def disconnected(self, client_id: int) -> None:
        self._clients.pop(client_id, None)
