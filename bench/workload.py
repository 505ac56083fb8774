"""What the benchmarks publish, bind and read."""

import laser_sdk as ls

BODY = b"x" * 256
BATCH = 1_000
STATUSES = ("open", "held", "done")


def bodies(start: int, count: int) -> list[dict[str, object]]:
    """Records for the view: a unique id, a text of three values, one of fifty, an integer and a fraction."""
    return [
        {
            "id": n,
            "status": STATUSES[n % 3],
            "van": f"van-{n % 50}",
            "prio": n * 7919 % 100,
            "minutes": n * 104_729 % 10_000 / 7,
        }
        for n in range(start, start + count)
    ]


FIELDS = ("id", "status", "van", "prio", "minutes")


async def bind(laser: ls.Laser, topic: str) -> None:
    """A topic of one partition whose records fill the view of the same name."""
    await laser.topic(topic).ensure(1)
    projection = ls.ProjectionBuilder(f"{topic}.v1").content_type("json").fields(list(FIELDS)).build()
    await laser.projections().register(projection)
    binding = (
        ls.ProjectionBindingBuilder()
        .source("bench", topic)
        .allow(f"{topic}.v1")
        .default_projection(f"{topic}.v1")
        .index(topic)
        .build()
    )
    await laser.bindings().apply(binding)


async def load(laser: ls.Laser, topic: str, count: int) -> None:
    """Publish `count` records in batches."""
    for start in range(0, count, BATCH):
        await laser.topic(topic).publish_batch().extend_json(bodies(start, BATCH)).send()


async def fill_keys(laser: ls.Laser, count: int) -> None:
    keys = laser.kv("keys")
    for n in range(count):
        await keys.set(f"key-{n}").bytes(BODY).send()


async def read_all(laser: ls.Laser, topic: str, count: int) -> None:
    """Replay a topic from its first record to its last."""
    cursor, seen = laser.topic(topic).replay(), 0
    while records := await cursor.poll():
        seen += len(records)
    assert seen == count, f"{seen} of {count} records"
