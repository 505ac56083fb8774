"""python -m desk.stack: the embedded Laser Stack in a process of its own."""

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import signal
import socket
import sys
from pathlib import Path

import apsw

from desk.stack.broker.access import Access, check
from desk.stack.engine import SCHEMAS, Broken, Engine
from desk.stack.managed.band import Band
from desk.stack.server import Server
from desk.stack.store import Store, StoreError, explain

HOST = "127.0.0.1"
_LASTING = range(20_000, 32_768)
"""Ports that neither Linux nor macOS gives to whoever asks for any: there, the port of a stack that is down may be taken
by the time it is started again."""
_TRIES = 50


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m desk.stack", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data; made when missing")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--username", default="iggy")
    parser.add_argument("--password", help="instead of the folder's own random one")
    return parser.parse_args(argv)


def listen(port: int) -> socket.socket:
    """A listening socket on loopback, for 0 on a free port; StoreError when the port cannot be had."""
    if not 0 <= port <= 65_535:
        raise StoreError(f"Port {port} cannot be used: a port is a number from 0 to 65535.")
    for lasting in () if port else random.sample(_LASTING, _TRIES):
        with contextlib.suppress(OSError):
            return _listening(lasting)
    try:
        return _listening(port)
    except OSError as error:
        raise StoreError(f"Port {port} on {HOST} cannot be used: {error.strerror}.") from error


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener


async def start(options: argparse.Namespace) -> None:
    """Look at what was asked for before anything is made, then serve."""
    check(options.username, options.password)
    with listen(options.port) as listener:
        await serve(options, listener)


async def serve(options: argparse.Namespace, listener: socket.socket) -> None:
    """From an empty or used folder to a served one, until SIGTERM or SIGINT."""
    store = Store.open(options.data, (*SCHEMAS, *Band.SCHEMAS))
    try:
        access = Access.of_folder(options.data, options.username, options.password)
        port = listener.getsockname()[1]
        try:
            engine = Engine(store, user=access.user, host=HOST, port=port, managed=Band)
        except apsw.Error as error:
            raise explain(error, options.data) from error
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        # a query that makes rows on its thread gives way after this many seconds, not after the usual 0.005
        sys.setswitchinterval(0.0005)
        gc.freeze()  # what is loaded by now stays; the collector need not look at it again
        told = {
            "connection_string": f"{access.user}:{access.password}@{HOST}:{port}",
            "pid": os.getpid(),
            "port": port,
            "data": str(options.data),
        }
        print(json.dumps(told), flush=True)
        await Server(engine, access).run(listener, stop)
        engine.close()
    finally:
        store.close()


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    try:
        asyncio.run(start(arguments()))
    except (StoreError, Broken) as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    os._exit(0)  # a thread may still be inside a query; the file is closed, nothing is left to tidy


if __name__ == "__main__":
    main()
