"""The streams, topics and views of a delivery day, made by whoever starts it. Doing it again changes nothing."""

import laser_sdk as ls

EVENTS, POSITIONS, INBOX, LANE = "fleet.events", "fleet.positions", "desk.inbox", "agent.sessions"
LANES = 8  # an agent that holds a step delays only the incidents of the same partition
MEMORY_STREAM, MEMORY_TOPIC = "fleet-memory", "customer.memory"

EVENT_FIELDS = ["van", "stop", "incident", "kind", "agent", "step", "state", "minute"]
POSITION_FIELDS = ["van", "status", "metres"]
_KEPT = ls.TopicRetention.expire_after(7 * 86_400_000)


async def lay_out(laser: ls.Laser, stream: str) -> None:
    """Everything the processes of a day use. `laser` is connected with `stream` as its default."""
    await laser.stream(stream).ensure()
    await laser.sessions().bootstrap(1, _KEPT)
    for topic, partitions in ((EVENTS, 1), (POSITIONS, 1), (INBOX, LANES), ("agent.control", 1)):
        await laser.topic(topic).ensure(partitions)
    await laser.memory_topic(MEMORY_TOPIC, stream=MEMORY_STREAM, partitions=1, ttl_ms=0)
    await _view(laser, stream, EVENTS, "fleet_events", EVENT_FIELDS)
    await _view(laser, stream, POSITIONS, "fleet_positions", POSITION_FIELDS)


async def _view(laser: ls.Laser, stream: str, topic: str, view: str, fields: list[str]) -> None:
    projection = f"{view}.v1"
    shape = ls.ProjectionBuilder(projection).name(view).content_type("json").fields(fields)
    await laser.projections().register(shape.build())
    binding = ls.ProjectionBindingBuilder().source(stream, topic).allow(projection)
    await laser.bindings().apply(binding.default_projection(projection).index(view).notify().build())
