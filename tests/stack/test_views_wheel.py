"""Views through the real SDK: projections, queries, watching, forks, schemas; and what SIGKILL must not undo."""

import asyncio
import json

import laser_sdk as ls
import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.rebuilding import assert_folder_rebuilds
from tests.stack.running import stack_process

STREAM = "fleet"


async def connect(stack, stream=STREAM):
    laser = await ls.Laser.connect(stack.connection, stream=stream)
    await laser.stream(stream).ensure()
    return laser


@pytest.fixture
async def stack(tmp_path):
    async with stack_process(tmp_path) as stack:
        yield stack
        assert_folder_rebuilds(tmp_path)


@pytest.fixture
async def laser(stack):
    laser = await connect(stack)
    yield laser
    await laser.close()


async def bind(
    laser, index="positions", topic="positions", fields=("van", "status", "incident", "metres"), **more
):
    """A topic, a projection of top-level fields, a binding that notifies."""
    await laser.topic(topic).ensure(1)
    projection = (
        ls.ProjectionBuilder(f"{index}.v1").name(index).content_type("json").fields(list(fields)).build()
    )
    await laser.projections().register(projection)
    binding = (
        ls.ProjectionBindingBuilder()
        .source(STREAM, topic)
        .allow(f"{index}.v1")
        .default_projection(f"{index}.v1")
        .index(index)
        .notify()
    )
    await laser.bindings().apply((binding.retention(more["retention"]) if more else binding).build())
    return laser.topic(topic)


async def publish(topic, *documents):
    batch = topic.publish_batch()
    for document in documents:
        batch = batch.add_json(document)
    await batch.send()


def table(page, *names):
    return [tuple(page.value(row, name).get("value") for name in names) for row in page.rows]


async def test_hello_advertises_what_is_served(laser):
    capabilities = await laser.capabilities()
    query = capabilities.query
    assert query.available and query.cursor_paging and query.cancellation and query.execution_status
    assert query.consistency == "strong" and capabilities.forks and capabilities.watch


async def test_group_by_counts_every_group_when_asked_for_enough(laser):
    topic = await bind(laser)
    await publish(topic, *({"van": f"v{n}", "status": "stopped", "incident": f"i{n}"} for n in range(60)))
    stopped = laser.query("positions").where_eq("status", "stopped").group_by(["van", "incident"]).count()
    assert len((await stopped.fetch()).rows) == 50  # the SDK's own default
    page = await (
        laser.query("positions")
        .where_eq("status", "stopped")
        .group_by(["van", "incident"])
        .count()
        .limit(1000)
        .fetch()
    )
    assert len(page.rows) == 60 and not page.page.has_more
    twice = laser.query("positions").group_by(["van"]).count().having(ls.Filter.pred("count", "gt", 1))
    assert (await twice.fetch()).rows == []


async def test_one_word_in_a_number_column_leaves_max_a_number(laser):
    topic = await bind(laser)
    await publish(
        topic, {"van": "v1", "metres": 9.0}, {"van": "v1", "metres": "abc"}, {"van": "v1", "metres": 10}
    )
    page = await laser.query("positions").max("metres").fetch()
    assert page.value(page.rows[0], "max") == {"kind": "double", "value": 10.0}
    assert "1 value did not fit" in page.fields[0]["doc"]


async def test_offsets_can_be_filtered_on(laser):
    topic = await bind(laser)
    await publish(topic, *({"van": f"v{n}"} for n in range(5)))
    page = await laser.query("positions").filter_gte("__laser_offset", 3).fetch()
    assert table(page, "van", "__laser_offset") == [("v3", 3), ("v4", 4)]


async def test_every_way_to_fetch(laser):
    topic = await bind(laser)
    documents = [{"van": f"v{n:03}", "metres": n * 1.5, "status": "ok"} for n in range(130)]
    await publish(topic, *documents)
    rows = await laser.query("positions").select_fields(["van"]).fetch_all()
    assert [row.values[0]["value"] for row in rows] == [d["van"] for d in documents]
    assert await laser.query("positions").order_desc("metres").fetch_all_typed() == documents[::-1]
    assert await laser.query("positions").where_eq("van", "v007").fetch_one() == documents[7]
    assert await laser.query("positions").where_eq("van", "none").fetch_one() is None
    page = (
        await laser.query("positions").filter_in("van", ["v001", "v002", "x"]).with_total().limit(1).fetch()
    )
    assert page.page.total == 2 and page.page.has_more
    rest = (
        await laser.query("positions")
        .filter_in("van", ["v001", "v002", "x"])
        .limit(1)
        .with_total()
        .cursor(page.page.next_cursor)
        .fetch()
    )
    assert table(rest, "van") == [("v002",)]
    walk = laser.query("positions").filter_prefix("van", "v12").max_rows(5).rows()
    assert [row.values[0]["value"] async for row in walk] == [f"v12{n}" for n in range(5)]
    contained = await laser.query("positions").filter_contains("van", "99").fetch()
    assert table(contained, "van") == [("v099",)]


async def test_pages_shift_for_nobody(laser):
    topic = await bind(laser)
    await publish(topic, *({"van": f"a{n}"} for n in range(30)))
    seen = []
    async for row in laser.query("positions").order_desc("van").limit(7).max_rows(99).rows():
        seen.append(row.values[0]["value"])
        if len(seen) == 7:
            await publish(topic, *({"van": f"z{n}"} for n in range(30)))
    assert sorted(seen) == sorted(f"a{n}" for n in range(30))


async def test_what_was_published_is_there_when_it_is_acknowledged(laser):
    topic = await bind(laser)
    for n in range(30):
        await topic.publish().json({"van": "v", "metres": float(n)}).send()
        page = await laser.query("positions").read_your_writes().count().max("metres").fetch()
        assert table(page, "count", "max") == [(n + 1, float(n))]


async def test_nearest_rows(laser):
    topic = await bind(laser, fields=("van",))
    await publish(topic, {"van": "east", "embedding": [1.0, 0.0]}, {"van": "north", "embedding": [0.0, 1.0]})
    page = await laser.query("positions").nearest([0.1, 0.9], 1).fetch()
    assert table(page, "van") == [("north",)] and 0 <= page.rows[0].score < 0.01


async def test_status_and_cancel_of_a_finished_query(laser):
    await bind(laser)
    request = laser.query("positions")
    execution = request.execution_id
    await request.fetch()
    status = await laser.query_status(execution)
    assert status["state"] == "completed" and await laser.cancel_query(execution) == status
    with pytest.raises(ls.QueryError):
        await laser.query_status("0000000000000000000000000A")


async def test_errors_of_a_query_name_their_kind(laser):
    with pytest.raises(ls.QueryError, match="index not found"):
        await laser.query("nothing").fetch()
    topic = await bind(laser)
    await publish(topic, {"van": "v"})
    with pytest.raises(ls.QueryError, match="holds text"):
        await laser.query("positions").sum("van").fetch()
    with pytest.raises(ls.QueryError, match="fork not found"):
        await laser.query("positions").fork("none").fetch()


async def test_watch_wakes_once_for_rows_and_not_for_repeats(laser):
    topic = await bind(laser)
    watch = laser.watch(index="positions")
    await publish(topic, {"van": "v1"}, {"van": "v2"})
    await publish(topic, {"nothing": 1})
    await bind(laser)
    found = await watch.poll()
    assert [(r.index, r.partition_id, r.from_offset, r.to_offset, r.rows) for r in found] == [
        (f"stream:{STREAM}/positions", 0, 0, 1, 2)
    ]
    rows = await topic.replay(from_offsets=[found[0].from_offset]).poll()
    assert [message.json()["van"] for message in rows[:2]] == ["v1", "v2"]
    later = laser.watch(index="positions", from_offsets=watch.offsets)
    await publish(topic, {"van": "v3"})
    assert [r.rows for r in await later.poll()] == [1]


async def test_bindings_that_come_late_read_everything(laser):
    await laser.topic("positions").ensure(1)
    await publish(laser.topic("positions"), *({"van": f"v{n}"} for n in range(2500)))
    await bind(laser)
    page = await laser.query("positions").count().fetch()
    assert table(page, "count") == [(2500,)]
    await bind(laser, fields=("van", "metres"))
    assert [f["name"] for f in (await laser.query("positions").fetch()).fields][:2] == ["van", "metres"]


async def test_projections_are_listed_with_short_names(laser):
    await bind(laser)
    (info,) = await laser.projections().list()
    assert info["projection"]["id"] == "positions.v1"
    assert info["bindings"][0]["index"] == "positions"
    assert (await laser.projections().get("positions.v1"))["projection"]["name"] == "positions"


async def test_headers_and_references(laser):
    topic = await bind(laser)
    await topic.publish().json({"van": "v1"}).index("status", "late").send()
    await topic.publish().json({"van": "v2"}).projection_ref("positions.v1").send()
    await topic.publish().json({"van": "v3"}).projection_ref("forbidden.v9").send()
    page = await laser.query("positions").fetch()
    assert table(page, "van", "status") == [("v1", "late"), ("v2", None)]


async def test_a_bill_disputed_in_a_fork(laser):
    topic = await bind(laser, fields=("van", "stop", "kind", "metres"))
    await publish(
        topic, *({"van": "v1", "stop": f"s{n}", "kind": "delivered", "metres": n * 360.0} for n in range(4))
    )
    fork = laser.fork("bill-1-v1")
    assert await fork.squash() is False
    await fork.create()
    for n in range(2):
        row = fork.put_row("positions", 0, 1_000_000_000 + n)
        await row.field("kind", "delivered").field("van", "v1").field("stop", f"billed-{n}").send()
    await fork.put_row("positions", 0, 1_000_000_000).field("van", "v1").field("metres", "7080.0").send()

    def bill(query):
        return query.where_eq("van", "v1").group_by(["van"]).count().max("metres").limit(1000)

    forked = await bill(laser.query("positions").fork(fork.id)).fetch()
    assert table(forked, "count", "max") == [(6, 7080.0)]
    trunk = await bill(laser.query("positions")).fetch()
    assert table(trunk, "count", "max") == [(4, 1080.0)]
    with pytest.raises(ls.ForkError) as conflict:
        await fork.create()
    assert not conflict.value.retryable
    assert [info["fork_id"] for info in await laser.forks()] == ["bill-1-v1"]
    assert await fork.squash() is True and await laser.forks() == []


async def test_schemas_through_the_wheel(laser):
    topic = await bind(laser, fields=("host", "cpu"))
    source = {
        "kind": "avro",
        "schema": json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "host", "type": "string"}, {"name": "cpu", "type": "long"}],
            }
        ),
    }
    number = await laser.schemas().register(source, name="readings", version=1)
    compiled = ls.CompiledSchema.compile(source, id=number)
    await topic.publish().avro(compiled, number, {"host": "h1", "cpu": 7}).send()
    assert table(await laser.query("positions").fetch(), "host", "cpu") == [("h1", 7)]
    assert [s["schema"]["name"] for s in await laser.schemas().list()] == ["readings"]
    with pytest.raises(ls.LaserError):
        await laser.schemas().register({"kind": "avro", "schema": "{"})


async def test_a_control_record_published_by_hand_is_applied(stack, laser):
    topic = await bind(laser)
    await publish(topic, {"van": "v1"})
    command = {"RemoveBinding": {"source": {"stream": STREAM, "topic": "positions"}, "projection_ref": None}}
    body = cbor.dumps({"v": 1, "timestamp_micros": 0, "command": command})
    ops = await connect(stack, agdx.OPS_STREAM)
    await ops.topic(agdx.CONTROL_TOPIC).publish().payload(body).partition_key("control").send()
    await ops.close()
    with pytest.raises(ls.QueryError):
        await laser.query("positions").fetch()


async def test_sigkill_loses_nothing_that_was_acknowledged(stack):
    laser = await connect(stack)
    topic = await bind(laser)
    fork = laser.fork("f")
    await fork.create(severed=True)
    for n in range(20):
        await publish(topic, *({"van": f"v{n}", "metres": float(i)} for i in range(50)))
    await fork.put_row("positions", 0, 10_000).field("van", "forked").send()
    await laser.close()
    await stack.kill()
    await stack.start()
    laser = await connect(stack)
    assert table(await laser.query("positions").count().fetch(), "count") == [(1000,)]
    assert table(await laser.query("positions").fork("f").fetch(), "van") == [("forked",)]
    await publish(laser.topic("positions"), {"van": "after"})
    assert table(await laser.query("positions").count().fetch(), "count") == [(1001,)]
    await laser.close()


async def test_retention_through_the_wheel(laser):
    topic = await bind(laser, retention={"kind": "max_rows", "rows": 3})
    for n in range(5):
        await publish(topic, {"van": f"v{n}"})
    assert table(await laser.query("positions").fetch(), "van") == [("v2",), ("v3",), ("v4",)]


async def test_a_slow_query_holds_up_nobody(laser):
    topic = await bind(laser)
    await publish(topic, *({"van": f"v{n % 7}", "metres": float(n)} for n in range(3000)))
    slow = asyncio.ensure_future(
        laser.query("positions")
        .agg_as("percentile", "p", field="metres", fraction=0.5)
        .group_by(["van"])
        .fetch()
    )
    await laser.kv("k").set("a").bytes(b"1").send()
    assert len((await slow).rows) == 7
