"""A server in the test's own process, on a real socket: for what a test must see or set inside it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from desk.stack.__main__ import HOST, listen
from desk.stack.broker.access import Access
from desk.stack.engine import SCHEMAS, Engine
from desk.stack.managed.band import Band
from desk.stack.server import Server
from desk.stack.store import Store


@contextlib.asynccontextmanager
async def serving(folder: Path, managed: type[Band] | None = None) -> AsyncIterator[Server]:
    """A running server of a fresh stack; user and password are iggy."""
    store = Store.open(folder, (*SCHEMAS, *(managed.SCHEMAS if managed else ())))
    listener, stop = listen(0), asyncio.Event()
    engine = Engine(store, user="iggy", host=HOST, port=listener.getsockname()[1], managed=managed)
    server = Server(engine, Access("iggy", "iggy"))
    running = asyncio.create_task(server.run(listener, stop))
    try:
        yield server
    finally:
        stop.set()
        await running
        store.close()


def connection_string(server: Server) -> str:
    """Its connection string."""
    return f"iggy:iggy@{HOST}:{server.engine.broker.port}"
