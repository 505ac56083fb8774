"""A probe that repeats what it was told."""

from desk.runtime.process import Process


async def main(me: Process) -> None:
    await me.event(
        "told",
        pause=me.settings.policy_pause,
        secret=me.settings.api_key,
        baseline=me.on("baseline"),
        other=me.on("other"),
    )
    await me.up()
