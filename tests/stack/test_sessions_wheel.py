"""Sessions, graph and presence through the real SDK: what was written is read right behind it."""

import laser_sdk as ls
import pytest

from desk.stack.wire import agdx, cbor, frame
from tests.stack.raw import RawClient
from tests.stack.running import running_stack, stack_process

STREAM = "desk"
KEEP = ls.TopicRetention.expire_after(86_400_000)


async def connect(connection):
    laser = await ls.Laser.connect(connection, stream=STREAM)
    await laser.stream(STREAM).ensure()
    return laser


@pytest.fixture
async def laser(tmp_path):
    async with running_stack(tmp_path) as connection:
        laser = await connect(connection)
        yield laser
        await laser.close()


async def ticket(laser, label="ticket-7"):
    """A session as the support desk writes one: tool, model call, state, memory, key-value, end."""
    session, lease = (
        await laser.sessions().create(label).agent("desk").namespace("support").tag("vip").begin()
    )
    tool = await session.tool("lookup", {"order": 7})
    await tool.complete(b"found")
    call = await session.model(ls.ModelRequest("m", b"{}", provider="p"))
    usage = {"input_tokens": 3, "output_tokens": 2}
    await call.complete(ls.ModelResponse(b"hello", model="m", finish_reason="stop", usage=usage))
    await session.state().set("step", 1)
    await session.memory().remember(b"scoped fact")
    await session.kv("scratch").set("k").bytes(b"v").send()
    lease.release()
    return session


async def test_a_ticket_is_indexed_as_it_is_written(laser):
    assert (await laser.sessions().bootstrap(8, KEEP)).registered
    sessions = laser.sessions()
    session = await ticket(laser)
    info = await sessions.get(session.conversation)
    assert (info["status"], info["label"], info["tool_calls"], info["model_calls"]) == (
        "active",
        "ticket-7",
        1,
        1,
    )
    assert (info["tokens_in"], info["tokens_out"]) == (3, 2)
    await session.end()
    assert (await sessions.get(session.conversation))["status"] == "completed"
    words = [event["display"] for event in (await sessions.events(session.conversation))["items"]]
    assert words == [
        "session.started",
        "tool.call",
        "tool.result",
        "model.request",
        "model.response",
        "state.updated",
        "memory.created",
        "state.updated",
        "session.completed",
    ]
    state = await sessions.state(session.conversation)
    assert (state["document"], state["revision"]) == ({"step": 1}, 1)
    links = (await sessions.links(session.conversation))["links"]
    assert sorted((link["surface"], link["relation"]) for link in links) == [
        ("kv", "wrote"),
        ("memory", "wrote"),
    ]
    assert [entry.key for entry in await session.kv("scratch").scan().entries()] == [b"k"]
    page = await sessions.list(status="completed", text="vip", total=True)
    assert page["total"] == 1 and page["items"][0]["id"] == session.conversation
    assert len((await sessions.changes(0, 100))["rows"]) >= 8
    lane = (await sessions.sources(session.conversation))["lane"]
    assert lane[2] == 8


async def test_a_request_with_provenance_only_opens_a_child_session(laser):
    await laser.sessions().bootstrap(2, KEEP)
    root, lease = await laser.sessions().start().agent("desk").begin()
    lease.release()
    child = ls.new_conversation_id()
    provenance = ls.Provenance(
        conversation_id=child,
        agent="critic",
        parent_conversation_id=root.conversation,
        root_conversation_id=root.conversation,
    )
    await laser.send_agent("agent.sessions", b"look at this", provenance)
    found = await laser.sessions().list(root=root.conversation)
    assert sorted(item["id"] for item in found["items"]) == sorted([root.conversation, child])


async def test_a_watch_sees_a_change_made_after_it(laser):
    await laser.sessions().bootstrap(1, KEEP)
    session, lease = await laser.sessions().start().agent("desk").begin()
    lease.release()
    watch = await laser.sessions().watch(20)
    await session.end()
    assert session.conversation in (await watch.next()).sessions


async def test_a_removed_source_answers_not_registered(laser):
    sessions = laser.sessions()
    await sessions.bootstrap(1, KEEP)
    await sessions.unregister()
    with pytest.raises(ls.SessionError, match="not registered"):
        await sessions.list()


async def test_the_index_survives_a_killed_stack(tmp_path):
    async with stack_process(tmp_path) as stack:
        laser = await connect(stack.connection)
        await laser.sessions().bootstrap(2, KEEP)
        session = await ticket(laser)
        before = await laser.sessions().get(session.conversation)
        await stack.kill()
        await stack.start()
        await laser.close()
        laser = await connect(stack.connection)
        assert await laser.sessions().get(session.conversation) == before
        again, lease = await laser.sessions().create("ticket-7").namespace("support").agent("desk").begin()
        lease.release()
        assert again.conversation == session.conversation
        await laser.close()


async def test_the_graph_through_the_wheel(laser):
    graph = laser.graph("people")
    ann, bob = ls.graph_node_entity("Person", "ann"), ls.graph_node_entity("Person", "bob")
    await graph.link("operator:42", "opened", "ticket:7")
    await laser.graph("people").upsert([ann, bob], [])
    start = await laser.graph("people").start_match(ls.Filter.pred("label", "eq", "Person")).fetch()
    assert len(start["nodes"]) == 2
    assert await laser.graph("people").relink("operator:42", "opened", "ticket:8") == 1
    assert await laser.graph("people").relink("operator:42", "opened", "ticket:8") == 0


async def test_two_agents_see_each_other(laser):
    async def answer(context, message):
        await context.respond(b"ok")

    await laser.bootstrap(partitions=1, retention=KEEP)
    agent = laser.spawn_agent(
        "triage", "agent.sessions", answer, respond_on="agent.sessions", capabilities=["triage"]
    )
    await agent.ready()
    registry = laser.agent_registry()
    await registry.refresh_presence()
    assert registry.inbox_for("triage") == "agent.sessions"
    await agent.shutdown()


async def test_a_mutation_repeated_after_a_kill_is_answered_and_not_applied_again(tmp_path):
    request = {"v": 1, "namespace": "n", "key": b"k", "value": b"v", "expect": "Absent"}
    body = cbor.dumps({"v": 1, "operation_id": 1 << 100, "payload": cbor.dumps(request)})
    async with stack_process(tmp_path) as stack:
        client = await RawClient.connect(stack.connection)
        first = await client.ask(agdx.KV_CAS, body)
        await stack.kill()
        client.close()
        await stack.start()
        client = await RawClient.connect(stack.connection)
        again = await client.ask(agdx.KV_CAS, body)
        assert isinstance(first, frame.Reply) and isinstance(again, frame.Reply)
        committed = {"Ok": {"Committed": {"version": 1}}}
        assert [cbor.loads(cbor.loads(r.body)["reply"]) for r in (first, again)] == [committed, committed]
        client.close()
