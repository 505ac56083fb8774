"""Who writes the texts for customers: templates (mock), the `claude` program, or the Anthropic API.

A writer always answers: when a model is slow or fails, the text is the template and `trouble` says why. What cannot
work at all (no key, no program) is a WriterError when the writer is made.
"""

import asyncio
import contextlib
import shutil
from dataclasses import dataclass
from typing import Protocol

from desk.settings import Settings

TASK = (
    "You write for the support desk of a shop. Write the reply to the customer: at most 80 words, plain text, "
    "polite, no promises beyond the facts. Keep amounts, order numbers and [citations] exactly as they are.\n\n"
    "Facts: {facts}\n\nA plain version to improve on: {template}"
)
"""What a model is told unless the desk says otherwise."""
_LONGEST = 2_000
"""A text is cut at this many characters."""


class WriterError(RuntimeError):
    """The chosen writer cannot work here. Its text is one sentence a person can act on."""


@dataclass(frozen=True)
class Text:
    """A text, who wrote it ("mock", "claude", "api", or "template" after trouble), and what went wrong or ""."""

    text: str
    by: str
    trouble: str = ""


class Writer(Protocol):
    """Whoever can write."""

    async def write(self, facts: str, template: str) -> Text:
        """A text from these facts; `template` is the text that is always good enough."""
        ...


def make_writer(settings: Settings, task: str = TASK) -> Writer:
    """The writer DESK_LLM names; `task` tells a model what to do with {facts} and {template}.

    Raises WriterError when it has no program or no key.
    """
    if settings.llm == "claude":
        program = shutil.which("claude")
        if program is None:
            raise WriterError(
                "DESK_LLM=claude needs the program claude on PATH: install it, or use DESK_LLM=mock."
            )
        return _Model("claude", settings.llm_timeout, _ask_program(program), task)
    if settings.llm == "api":
        if not settings.api_key:
            raise WriterError("DESK_LLM=api needs ANTHROPIC_API_KEY: set it, or use DESK_LLM=mock.")
        return _Model("api", settings.llm_timeout, _ask_api(settings), task)
    return _Mock()


class _Mock:
    """The templates themselves: the same text every time, at no cost."""

    async def write(self, facts: str, template: str) -> Text:
        return Text(template, by="mock")


class _Ask(Protocol):
    async def __call__(self, prompt: str) -> str: ...


class _Model:
    """A model with a deadline in seconds, and the template behind it."""

    def __init__(self, name: str, timeout: float, ask: _Ask, task: str) -> None:
        self._name = name
        self._task = task
        self._timeout = timeout
        self._ask = ask

    async def write(self, facts: str, template: str) -> Text:
        prompt = self._task.format(facts=facts, template=template)
        try:
            text = (await asyncio.wait_for(self._ask(prompt), self._timeout)).strip()
        except TimeoutError:
            return Text(template, "template", f"{self._name} took longer than {self._timeout:g} s")
        except (
            Exception
        ) as error:  # whatever a model, a network or a program can do: the customer gets a text
            return Text(template, "template", f"{self._name} failed ({_first_line(error)})")
        if not text:
            return Text(template, "template", f"{self._name} wrote nothing")
        return Text(text[:_LONGEST], self._name)


def _ask_program(program: str) -> _Ask:
    async def ask(prompt: str) -> str:
        process = await asyncio.create_subprocess_exec(
            program, "-p", prompt,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            out, err = await process.communicate()
        finally:
            if (
                process.returncode is None
            ):  # the deadline cancelled us: a program nobody waits for would linger
                _end(process.pid)
                await process.wait()
        if process.returncode:
            raise WriterError(
                f"ended with {process.returncode}: {err.decode(errors='replace').strip()[:200]}"
            )
        return out.decode(errors="replace")

    return ask


def _end(pid: int) -> None:
    """SIGKILL a program and what it started: what is left would hold its output open, and us with it."""
    import psutil  # only for whoever has a slow program

    try:
        program = psutil.Process(pid)
        family = [program, *program.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _ask_api(settings: Settings) -> _Ask:
    async def ask(prompt: str) -> str:
        import anthropic  # a second to import and 30 MB: only for those who use it

        async with anthropic.AsyncAnthropic(
            api_key=settings.api_key, timeout=settings.llm_timeout, max_retries=1
        ) as client:
            answer = await client.messages.create(
                model=settings.llm_model, max_tokens=300, messages=[{"role": "user", "content": prompt}]
            )
        return "".join(block.text for block in answer.content if block.type == "text")

    return ask


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
