"""A clean stop after a query: everything lies in the file itself, where damage is noticed, and nothing in a WAL."""

from desk.stack.store import FILE
from tests.stack.running import stack_process
from tests.stack.test_views_wheel import bind, connect, publish


async def test_a_stop_after_a_query_leaves_no_wal(tmp_path):
    async with stack_process(tmp_path) as stack:
        laser = await connect(stack)
        topic = await bind(laser)
        await publish(topic, *({"van": f"van-{n}", "status": "on its way"} for n in range(100)))
        assert len((await laser.query("positions").limit(1000).fetch()).rows) == 100
        await laser.close()
        assert await stack.stop() == (0, "")
    assert not (tmp_path / f"{FILE}-wal").exists()
    assert b"van-99" in (tmp_path / FILE).read_bytes()
