"""A query on its way: its status, cancelling it, its deadline, its failure, and a client that leaves it."""

import asyncio

import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.fleet import bound, filled
from tests.stack.sdist import fixture
from tests.stack.viewing import agg, endless, now_us


@pytest.fixture
def views(tmp_path):
    yield from map(filled, bound(tmp_path))


async def test_status_follows_a_query(views):
    await views.page(execution_id=b"s" * 16)
    request = {"v": 1, "execution_id": b"s" * 16}
    status = (await views.ask(agdx.QUERY_STATUS, request))["Ok"]
    assert status["state"] == "completed" and status["row_count"] == 30 and status["produced_bytes"] > 1000
    assert status["finished_at_micros"] >= status["started_at_micros"]
    assert list(status) == list(cbor.loads(fixture("query_status_reply.bin"))["Ok"])
    assert (await views.ask(agdx.QUERY_CANCEL, request))["Ok"] == status
    assert (
        "IndexNotFound" in (await views.ask(agdx.QUERY_STATUS, {**request, "execution_id": b"u" * 16}))["Err"]
    )


async def test_a_running_query_is_cancelled(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.compiled", endless)
    running = asyncio.create_task(views.reply(execution_id=b"c" * 16))
    request = {"v": 1, "execution_id": b"c" * 16}
    while (await views.ask(agdx.QUERY_STATUS, request)).get("Ok", {}).get("state") != "running":  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert (await views.ask(agdx.QUERY_CANCEL, request))["Ok"]["state"] == "cancelled"
    assert await running == {"Err": {"Cancelled": {"execution_id": b"c" * 16}}}
    assert (await views.ask(agdx.QUERY_STATUS, request))["Ok"]["state"] == "cancelled"


async def test_a_query_past_its_deadline_is_stopped_and_holds_up_nobody(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.compiled", endless)
    running = [
        asyncio.create_task(views.reply(execution_id=bytes((n,)) * 16, deadline_micros=now_us() + 1_000_000))
        for n in range(1, 6)  # more than there are threads
    ]
    for n, reply in enumerate(await asyncio.gather(*running), start=1):
        assert reply == {"Err": {"DeadlineExceeded": {"execution_id": bytes((n,)) * 16}}}
    request = {"v": 1, "execution_id": b"\x01" * 16}
    status = (await views.ask(agdx.QUERY_STATUS, request))["Ok"]
    assert status["state"] == "expired" and "error" not in status
    monkeypatch.undo()
    assert len(await views.rows()) == 30


async def test_queries_whose_clients_are_gone_leave_their_threads(views, monkeypatch):
    monkeypatch.setattr("desk.stack.query.surface.compiled", endless)
    gone = [asyncio.create_task(views.reply(execution_id=bytes((n,)) * 16)) for n in range(1, 4)]
    request = {"v": 1, "execution_id": b"\x03" * 16}
    while (await views.ask(agdx.QUERY_STATUS, request)).get("Ok", {}).get("state") != "running":  # noqa: ASYNC110
        await asyncio.sleep(0)
    for task in gone:  # what the server does with a connection that is lost (test_query_departures.py)
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    assert (await views.ask(agdx.QUERY_STATUS, request))["Ok"]["state"] == "cancelled"
    monkeypatch.undo()
    async with asyncio.timeout(60):
        assert len(await views.rows()) == 30


async def test_a_deadline_in_the_past_is_refused_at_once(views):
    error = await views.error(execution_id=b"d" * 16, deadline_micros=1)
    assert error == {"DeadlineExceeded": {"execution_id": b"d" * 16}}


async def test_a_failed_query_tells_why_and_its_status_too(views):
    views.publish({"minute": 2**62}, {"minute": 2**62})
    error = await views.error(execution_id=b"f" * 16, aggregate={"funcs": [agg("sum", "minute")]})
    assert error == {"Backend": "integer overflow"}
    status = (await views.ask(agdx.QUERY_STATUS, {"v": 1, "execution_id": b"f" * 16}))["Ok"]
    assert status["state"] == "failed" and status["error"] == error
