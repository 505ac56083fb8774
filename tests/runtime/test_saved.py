"""Saved results: the first writer wins, a conflict never escapes, and everybody reads the same."""

import asyncio

from desk.runtime import saved


async def test_get_and_put(laser):
    kv = laser.kv("plain")
    assert await saved.get_json(kv, "a") is None
    await saved.put_json(kv, "a", {"x": [1, 2]})
    await saved.put_json(kv, "a", {"x": [3]})
    assert await saved.get_json(kv, "a") == {"x": [3]}


async def test_first_writer_wins(laser):
    kv = laser.kv("first")
    assert await saved.first(kv, "a", {"who": "one"}) == {"who": "one"}
    assert await saved.first(kv, "a", {"who": "two"}) == {"who": "one"}


async def test_only_the_first_writer_is_told_that_it_was_the_first(laser):
    kv = laser.kv("first")
    raced = await asyncio.gather(*(saved.first_and_whose(kv, "raced", "same") for _ in range(5)))
    assert sorted(raced) == [*[("same", False)] * 4, ("same", True)]


async def test_writer_sees_what_a_replay_will_see(laser):
    kv = laser.kv("first")
    assert await saved.first(kv, "pair", ("a", 1)) == ["a", 1] == await saved.first(kv, "pair", None)


async def test_once_works_once(laser):
    kv, calls = laser.kv("once"), []

    async def work():
        calls.append(1)
        return len(calls)

    assert [await saved.once(kv, "a", work) for _ in range(3)] == [1, 1, 1]
    assert calls == [1]


async def test_nothing_is_a_result_too(laser):
    kv, calls = laser.kv("once"), []

    async def work():
        calls.append(1)

    assert await saved.once(kv, "nothing", work) is None
    assert await saved.once(kv, "nothing", work) is None
    assert calls == [1]


async def test_racing_workers_return_the_same_result(laser):
    kv, both_working = laser.kv("once"), asyncio.Barrier(2)

    async def work(who):
        await both_working.wait()
        return who

    results = await asyncio.gather(*(saved.once(kv, "race", lambda w=w: work(w)) for w in ("one", "two")))
    assert results[0] == results[1] == await saved.get_json(kv, "race")


async def test_swaps_from_many_sides_all_count(laser):
    kv = laser.kv("swap")

    async def add():
        await saved.compare_and_swap(kv, "n", lambda n: (n or 0) + 1)

    await asyncio.gather(*(add() for _ in range(20)))
    assert await saved.get_json(kv, "n") == 20


async def test_swap_may_decide_to_do_nothing(laser):
    kv = laser.kv("swap")
    assert await saved.compare_and_swap(kv, "quiet", lambda value: None) is None
    assert await saved.get_json(kv, "quiet") is None
    await saved.put_json(kv, "quiet", 1)
    assert await saved.compare_and_swap(kv, "quiet", lambda value: None) == 1


async def test_what_is_discarded_reads_as_nothing_and_what_was_written_since_stays(laser):
    kv = laser.kv("discard")
    await saved.put_json(kv, "a", "old")
    seen = await kv.get_entry("a")
    await saved.put_json(kv, "a", "new")
    await saved.discard(kv, "a", seen.version)
    assert await saved.get_json(kv, "a") == "new"
    await saved.discard(kv, "a", (await kv.get_entry("a")).version)
    assert await saved.get_json(kv, "a") is None
    await saved.discard(kv, "a", seen.version)
    assert await saved.get_json(kv, "a") is None
