"""Who writes, and what happens when a model is missing, slow or wrong.

The real anthropic client talks to a server on this machine; `claude` is a stand-in program on PATH.
"""

import asyncio
import contextlib
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from desk.outside.writer import Text, Writer, WriterError, make_writer
from desk.settings import Settings
from tests.supervisor.running import survivors

PATIENT = 60.0  # seconds a model has that answers
SLOW = 3.0  # seconds one has that does not: enough to have begun, also on a busy machine
FACTS, TEMPLATE = "$49.00 was refunded for order 1042", "Dear customer, $49.00 is on its way."


def mock() -> Writer:
    return make_writer(Settings())


async def test_the_mock_is_the_template_every_time() -> None:
    assert [await mock().write(FACTS, TEMPLATE) for _ in range(2)] == [Text(TEMPLATE, "mock")] * 2


# -- the program


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Writer]:
    """Puts a `claude` on PATH that does what the shell script says."""

    def write(script: str, timeout: float = PATIENT) -> Writer:
        program = tmp_path / "claude"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return make_writer(Settings().having(llm="claude", llm_timeout=timeout))

    return write


async def test_claude_is_asked_with_dash_p_and_the_facts(claude: Callable[..., Writer]) -> None:
    text = await claude('[ "$1" = -p ] && echo "$2" | grep -o "Facts: .*"').write(FACTS, TEMPLATE)
    assert text == Text(f"Facts: {FACTS}", "claude")


async def test_a_failing_program_falls_back_and_says_why(claude: Callable[..., Writer]) -> None:
    text = await claude("echo no credit >&2; exit 3").write(FACTS, TEMPLATE)
    assert (text.text, text.by) == (TEMPLATE, "template")
    assert "ended with 3: no credit" in text.trouble


async def test_a_slow_program_falls_back_and_is_ended(claude: Callable[..., Writer], tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    text = await claude(f"echo $$ > {pid}; exec sleep 600", timeout=SLOW).write(FACTS, TEMPLATE)
    assert text == Text(TEMPLATE, "template", f"claude took longer than {SLOW:g} s")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_a_slow_programs_own_children_do_not_hold_the_reply_up(
    claude: Callable[..., Writer], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    writer = claude(f"sleep 600 & echo $! > {pid}; wait", timeout=SLOW)
    text = await asyncio.wait_for(writer.write(FACTS, TEMPLATE), 60)
    assert text.trouble == f"claude took longer than {SLOW:g} s"
    with contextlib.suppress(psutil.NoSuchProcess):
        assert not survivors([psutil.Process(int(pid.read_text()))])


async def test_a_silent_program_falls_back(claude: Callable[..., Writer]) -> None:
    assert (await claude("true").write(FACTS, TEMPLATE)).trouble == "claude wrote nothing"


async def test_a_long_text_is_cut(claude: Callable[..., Writer]) -> None:
    text = await claude("head -c 100000 /dev/zero | tr '\\0' a").write(FACTS, TEMPLATE)
    assert len(text.text) == 2_000


def test_without_the_program_one_clear_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WriterError, match="needs the program claude on PATH"):
        make_writer(Settings().having(llm="claude"))


# -- the API


class Api:
    """A server that answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []  # whichever header this version of the client uses
        self.status, self.text, self.wait = 200, "A kind reply.", 0.0
        self.over = threading.Event()
        api = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                api.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                api.keys.append(self.headers.get("authorization") or self.headers.get("x-api-key"))
                api.over.wait(api.wait)
                body = json.dumps(api.body()).encode()
                self.send_response(api.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                with contextlib.suppress(ConnectionError):  # the client may have given up
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.server.daemon_threads = True

    def body(self) -> dict[str, Any]:
        if self.status != 200:
            return {"type": "error", "error": {"type": "api_error", "message": "overloaded, come back"}}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": self.text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    api = Api()
    threading.Thread(target=api.server.serve_forever, daemon=True).start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{api.server.server_port}")
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    yield api
    api.over.set()
    api.server.shutdown()
    api.server.server_close()


def api_writer(**changes: Any) -> Writer:
    return make_writer(
        Settings().having(**{"llm": "api", "api_key": "sk-test", "llm_timeout": PATIENT, **changes})
    )


async def test_the_real_client_asks_the_chosen_model_with_the_key(api: Api) -> None:
    text = await api_writer(llm_model="claude-test").write(FACTS, TEMPLATE)
    assert text == Text("A kind reply.", "api")
    (asked,) = api.asked
    assert asked["model"] == "claude-test" and [key.removeprefix("Bearer ") for key in api.keys if key] == [
        "sk-test"
    ]
    assert FACTS in asked["messages"][0]["content"] and TEMPLATE in asked["messages"][0]["content"]


async def test_a_failing_api_falls_back_and_says_why(api: Api) -> None:
    api.status = 400
    text = await api_writer().write(FACTS, TEMPLATE)
    assert (text.text, text.by) == (TEMPLATE, "template")
    assert text.trouble.startswith("api failed (BadRequestError") and "sk-test" not in text.trouble


async def test_a_slow_api_falls_back(api: Api) -> None:
    api.wait = 600.0
    text = await api_writer(llm_timeout=0.3).write(FACTS, TEMPLATE)
    assert (text.text, text.by) == (TEMPLATE, "template")
    assert text.trouble == "api took longer than 0.3 s"


async def test_an_empty_answer_falls_back(api: Api) -> None:
    api.text = "  "
    assert (await api_writer().write(FACTS, TEMPLATE)).trouble == "api wrote nothing"


async def test_nobody_answering_falls_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    assert (await api_writer().write(FACTS, TEMPLATE)).trouble.startswith("api failed (APIConnectionError")


def test_without_a_key_one_clear_sentence() -> None:
    with pytest.raises(WriterError, match="needs ANTHROPIC_API_KEY"):
        make_writer(Settings().having(llm="api"))
