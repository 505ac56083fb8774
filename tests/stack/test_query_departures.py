"""Clients that leave, or send on, while their query runs: over real sockets, the server in the test's process."""

import asyncio

import pytest

from desk.stack.managed.band import Band
from desk.stack.query.runner import THREADS
from desk.stack.server import AHEAD_BYTES
from desk.stack.wire import agdx, cbor
from desk.stack.wire.codes import Code
from desk.stack.wire.scalars import U32, identifier, name
from tests.stack.brokers import send_body
from tests.stack.raw import RawClient
from tests.stack.serving import connection_string, serving
from tests.stack.viewing import endless, now_us

PATIENCE = 60  # seconds; far less than any deadline here
HOUR_US = 3_600_000_000
RULES = {"fields": [{"name": "n", "pointer": "/n"}], "inline_payload": True}
PROJECTION = {
    **{"id": "p", "name": "p", "version": 1, "content_type": "json"},
    **{"extraction": RULES, "inline_payload_default": True},
}
BINDING = {
    **{"source": {"stream": "s", "topic": "t"}, "index": "v"},
    **{"allowed_projections": ["p"], "default_projection": "p"},
}


async def fill(client):
    """A view `v` of three records."""
    await client.ask(Code.CREATE_STREAM, name("s"))
    await client.ask(Code.CREATE_TOPIC, identifier("s") + U32.pack(1) + name("t"))
    for number, command in enumerate(({"RegisterProjection": PROJECTION}, {"ApplyBinding": BINDING}), 1):
        payload = cbor.dumps({"v": 1, "timestamp_micros": 0, "command": command})
        body = cbor.dumps({"v": 1, "operation_id": number, "payload": payload})
        assert b"bok" in (await client.ask(agdx.CONTROL_PUBLISH, body)).body
    await client.ask(Code.SEND, send_body(*(b'{"n": %d}' % n for n in range(3))))


def query(number):
    """The body of a query with this execution id; it has an hour."""
    asked = {
        "execution_id": bytes((number,)) * 16,
        "target": {"kind": "operational", "index": "v"},
        "deadline_micros": now_us() + HOUR_US,
        "page": {"limit": 10, "offset": 0},
    }
    return cbor.dumps({"v": 1, "query": asked})


async def reaches(client, number, state):
    """Wait until the query with this execution id is in `state`."""
    body = cbor.dumps({"v": 1, "execution_id": bytes((number,)) * 16})
    while True:
        reply = cbor.loads((await client.ask(agdx.QUERY_STATUS, body)).body)
        if reply.get("Ok", {}).get("state") == state:
            return


@pytest.fixture
async def server(tmp_path):
    async with serving(tmp_path, Band) as running:
        yield running


@pytest.fixture
async def connection(server):
    return connection_string(server)


@pytest.mark.parametrize("leave", ["close", "abort"])
async def test_queries_of_clients_that_left_are_interrupted(connection, monkeypatch, leave):
    async with asyncio.timeout(PATIENCE):
        client = await RawClient.connect(connection)
        await fill(client)
        monkeypatch.setattr("desk.stack.query.surface.compiled", endless)
        for number in range(1, THREADS + 1):
            leaving = await RawClient.connect(connection)
            leaving.writer.write(leaving.request(agdx.QUERY, query(number)))
            await reaches(client, number, "running")
            getattr(leaving.writer.transport, leave)()
        for number in range(1, THREADS + 1):
            await reaches(client, number, "cancelled")
        monkeypatch.undo()
        reply = await client.ask(agdx.QUERY, query(9))  # some thread is free again
        assert len(cbor.loads(reply.body)["Ok"]["rows"]) == 3
        client.close()


async def test_a_client_that_sends_on_while_its_query_runs_has_to_wait(server, connection, monkeypatch):
    async with asyncio.timeout(PATIENCE):
        client, eager = await RawClient.connect(connection), await RawClient.connect(connection)
        await fill(client)
        monkeypatch.setattr("desk.stack.query.surface.compiled", endless)
        ping = eager.request(Code.PING)
        pings = 2 * AHEAD_BYTES // len(ping)
        eager.writer.write(eager.request(agdx.QUERY, query(1)))
        await reaches(client, 1, "running")
        (held,) = (c for c in server.connections.values() if c.session.client == eager.client)
        assert held._transport.is_reading()
        eager.writer.write(ping * pings)
        while held._transport.is_reading():  # noqa: ASYNC110
            await asyncio.sleep(0)
        await client.ask(agdx.QUERY_CANCEL, cbor.dumps({"v": 1, "execution_id": b"\x01" * 16}))
        assert "Cancelled" in cbor.loads((await eager.read()).body)["Err"]
        for _ in range(pings):
            assert not (await eager.read()).status
        client.close()
        eager.close()
