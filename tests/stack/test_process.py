"""`python -m desk.stack` as a person meets it: what it says, what it refuses, how it ends."""

import asyncio
import os
import socket
import stat

import laser_sdk as ls
import pytest

from desk.stack.broker.access import FILE as PASSWORD
from desk.stack.store import FILE, VERSION, Store
from tests.stack.running import StackEnded, StackProcess, running_stack, stack_process


async def refusal(folder, *arguments):
    """What a stack that cannot start writes to stderr; exit code 2, one line."""
    stack = StackProcess(folder, *arguments)
    try:
        with pytest.raises(StackEnded) as ended:
            await stack.start()
    finally:
        await stack.end()
    assert ended.value.code == 2
    assert ended.value.text.count("\n") == 1
    return ended.value.text


async def test_it_serves_the_connection_string_it_prints_and_sigterm_ends_it(tmp_path):
    async with stack_process(tmp_path / "data") as stack:
        assert stack.connection.startswith("iggy:")
        assert stack.connection.endswith(f"@127.0.0.1:{stack.port}")
        laser = await ls.Laser.connect(stack.connection, stream="s")
        await laser.stream("s").ensure()
        await laser.close()
        assert await stack.stop() == (0, "")


async def test_the_password_is_random_kept_and_for_the_owner_only(tmp_path):
    async with running_stack(tmp_path / "a") as first, running_stack(tmp_path / "b") as second:
        assert first.split("@")[0] != second.split("@")[0]
    kept = tmp_path / "a" / PASSWORD
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    async with running_stack(tmp_path / "a") as again:
        assert again.split("@")[0] == first.split("@")[0]


async def test_a_wrong_password_is_refused_as_iggy_refuses_it(tmp_path):
    async with stack_process(tmp_path, "--username", "desk", "--password", "right") as stack:
        where = stack.connection.split("@")[1]
        for wrong in (f"desk:wrong@{where}", f"iggy:right@{where}"):
            with pytest.raises(ls.TransportError, match="Invalid credentials"):
                await ls.Laser.connect(wrong)
        await (await ls.Laser.connect(f"desk:right@{where}")).close()


async def test_a_folder_in_use_is_refused(tmp_path):
    async with stack_process(tmp_path) as stack:
        assert f"already in use by the stack with pid {stack.pid}" in await refusal(tmp_path)


async def test_the_port_of_a_stack_that_is_down_is_given_to_nobody_who_asks_for_any(tmp_path):
    async with stack_process(tmp_path / "data") as stack:
        assert stack.port < 32_768  # Linux begins there, macOS later


async def test_a_port_in_use_is_refused_before_anything_is_made(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"Port {port} on 127.0.0.1 cannot be used" in await refusal(tmp_path / "data", "--port", port)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("port", ["-1", "65536"])
async def test_a_number_that_is_no_port_is_refused_before_anything_is_made(tmp_path, port):
    said = await refusal(tmp_path / "data", "--port", port)
    assert said == f"Port {port} cannot be used: a port is a number from 0 to 65535.\n"
    assert not (tmp_path / "data").exists()


async def test_data_of_a_newer_version_is_refused(tmp_path):
    store = Store.open(tmp_path, [])
    store.db.pragma("user_version", VERSION + 1)
    store.close()
    assert "newer version" in await refusal(tmp_path)


async def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / FILE).write_bytes(b"not a database at all, but long enough" * 50)
    assert "is damaged" in await refusal(tmp_path)


async def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in await refusal(tmp_path / "file" / "data")


async def test_a_password_that_would_break_the_connection_string_is_refused(tmp_path):
    for option in (("--password", "a@b"), ("--password", ""), ("--username", "a/b")):
        assert "connection string" in await refusal(tmp_path / "data", *option)
    assert not (tmp_path / "data").exists(), "it is refused before anything is made"


async def test_only_loopback_is_listened_on(tmp_path):
    async with stack_process(tmp_path) as stack:
        reader, writer = await asyncio.open_connection("127.0.0.1", stack.port)
        writer.close()
        assert not reader.at_eof()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.2", stack.port)
