"""Events: fields, order, and ids that betray a repeat."""

import os

from desk.runtime.events import Events


async def read(laser, topic):
    return [message.json() for message in await laser.topic(topic).replay().poll()]


async def test_an_event_says_who_and_when(laser):
    await laser.topic("ev").ensure(1)
    await Events(laser, "ev", "resolver").emit("replay", ticket="t-1", text="from checkpoint", state=None)
    [event] = await read(laser, "ev")
    assert event.keys() == {"id", "at", "kind", "agent", "pid", "ticket", "text"}
    assert (event["kind"], event["agent"], event["pid"]) == ("replay", "resolver", os.getpid())


async def test_one_writer_is_in_order(laser):
    await laser.topic("order").ensure(1)
    events = Events(laser, "order", "x")
    for n in range(20):
        await events.emit("step", step=n)
    assert [e["step"] for e in await read(laser, "order")] == list(range(20))


async def test_a_repeat_by_another_process_has_the_same_id(laser):
    await laser.topic("twice").ensure(1)
    for agent in ("before", "after"):
        await Events(laser, "twice", agent).emit("closed", key="t-1:closed")
    first, second = await read(laser, "twice")
    assert first["id"] == second["id"]


async def test_event_about_another_process(laser):
    await laser.topic("about").ensure(1)
    await Events(laser, "about", "supervisor").emit("killed", agent="resolver", pid=7)
    [event] = await read(laser, "about")
    assert (event["agent"], event["pid"]) == ("resolver", 7)
