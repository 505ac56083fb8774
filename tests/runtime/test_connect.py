"""Connecting says clearly what went wrong, and a lost connection is told from a refusal."""

import laser_sdk as ls
import pytest

from desk.runtime.connect import StackUnreachable, connect, connection_lost


async def test_nobody_there():
    with pytest.raises(StackUnreachable) as caught:
        await connect("iggy:secret@127.0.0.1:1", timeout=0.2)
    assert str(caught.value) == "The stack at 127.0.0.1:1 did not answer within 0.2 s: is it running?"


async def test_wrong_password(connection):
    where = connection.rpartition("@")[2]
    with pytest.raises(
        StackUnreachable, match=f"The stack at {where} refused the connection: Invalid credentials"
    ):
        await connect(f"iggy:wrong@{where}")


async def test_an_unusable_connection_string():
    with pytest.raises(StackUnreachable, match="refused the connection"):
        await connect("nonsense")


async def test_options_of_the_owner_are_kept(connection):
    laser = await connect(f"{connection}?nodelay=true")
    await laser.close()


async def test_refusals_are_not_a_lost_connection(laser):
    with pytest.raises(ls.KvError) as conflict:
        for _ in range(2):
            await laser.kv("n").set("a").json(1).expect_absent().commit()
    assert not connection_lost(conflict.value)
    with pytest.raises(ls.InvalidError) as invalid:
        await laser.agdx("lane", "me", ls.derive_conversation_id("x")).command(
            ls.derive_conversation_id("y"), b"", operation="o", target="t"
        )
    assert not connection_lost(invalid.value)
    assert not connection_lost(ls.RejectedError("no"))
    assert not connection_lost(ls.TimeoutError("nobody decided"))
    assert not connection_lost(ValueError("mine"))


def test_transport_errors_are():
    assert connection_lost(ls.TransportError("Disconnected"))
