"""Results that outlive the process: keys and values in key-value state, first writer wins.

Values are what JSON can hold. A value comes back as JSON gives it (a tuple as a list), also to its writer, so
that a first run and a replay see the same.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import laser_sdk as ls


async def get_json(kv: ls.Kv, key: str) -> Any:
    """The value at `key`, or None."""
    raw = await kv.get(key)
    return None if raw is None else json.loads(bytes(raw))


async def put_json(kv: ls.Kv, key: str, value: Any) -> None:
    """Set `key`, whatever was there."""
    await kv.set(key).bytes(json.dumps(value)).send()


async def first(kv: ls.Kv, key: str, value: Any) -> Any:
    """Store `value` unless something is there. Returns what is stored now, whoever wrote it."""
    return (await first_and_whose(kv, key, value))[0]


async def first_and_whose(kv: ls.Kv, key: str, value: Any) -> tuple[Any, bool]:
    """As `first`, and whether it was this call that stored it: of several that race, only one is told so."""
    text = json.dumps(value)
    while True:
        try:
            await kv.set(key).bytes(text).expect_absent().commit()
            return json.loads(text), True
        except ls.KvError as error:
            if not error.version_conflict:
                raise
        raw = await kv.get(key)
        if raw is not None:  # else it expired or was deleted in between
            return json.loads(bytes(raw)), False


async def once(kv: ls.Kv, key: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """The result saved at `key`; without one, `work()`'s, saved before it is returned.

    A process killed during `work` does it again; two that race both work, and both return the first one's.
    """
    raw = await kv.get(key)
    if raw is not None:
        return json.loads(bytes(raw))
    return await first(kv, key, await work())


async def compare_and_swap(kv: ls.Kv, key: str, change: Callable[[Any], Any]) -> Any:
    """Replace the value at `key` by `change(value)`, or by nothing when `change` returns None.

    `change` gets None where there is no value; it is called again after a conflict, so it must not have effects.
    Returns the value that is there afterwards. A conflict never escapes.
    """
    while True:
        entry = await kv.get_entry(key)
        current = None if entry is None else json.loads(bytes(entry.value))
        new = change(current)
        if new is None:
            return current
        text = json.dumps(new)
        request = kv.set(key).bytes(text)
        request = request.expect_absent() if entry is None else request.expect_version(entry.version)
        try:
            await request.commit()
            return json.loads(text)
        except ls.KvError as error:
            if not error.version_conflict:
                raise


async def discard(kv: ls.Kv, key: str, version: int) -> None:
    """Delete `key` if it still is at `version`; what somebody wrote there since stays.

    A delete names no version; a swap to a value that expires at once does. Until then the value reads as None.
    """
    try:
        await kv.set(key).bytes("null").expect_version(version).ttl(1).commit()
    except ls.KvError as error:
        if not error.version_conflict:
            raise
