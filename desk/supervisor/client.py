"""The owner's end of the supervisor: start it, tell it what to do, know the state of every process."""

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from desk.runtime.spec import Spec

_STOP = 10.0  # seconds until a supervisor that does not end is killed; what is below it follows
_LINE = 2**20


class SupervisorError(RuntimeError):
    """What could not be done and why, in one sentence."""


@dataclass(frozen=True)
class ProcessState:
    """One process as the supervisor last saw it."""

    name: str
    pid: int
    """0 between two lives."""
    state: str
    """starting, up, down (just died, about to be replaced), failing (dies again and again) or stopped."""
    deaths: int
    """Deaths so far, asked for or not; restarts do not count."""
    error: str
    """When failing: the last line of its stderr."""


class Supervisor:
    """A running supervisor. It and everything below it ends with `stop`, or with this process."""

    def __init__(self, process: asyncio.subprocess.Process, specs: Sequence[Spec]) -> None:
        self.connection = ""
        """Where the stack is: user:password@host:port."""
        self.states: dict[str, ProcessState] = {}
        self.monkey = False
        """Whether the chaos monkey is loose, whoever let it."""
        assert process.stdin and process.stdout  # it was started with pipes
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._specs = tuple(specs)
        self._listeners: list[Callable[[ProcessState], None]] = []
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._gone = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, *, folder: Path, specs: Sequence[Spec] = (), embedded: bool = True, connection: str = ""
    ) -> "Supervisor":
        """Start a supervisor and, when `embedded`, the stack; the processes of `specs` follow with `launch`.

        `folder` is the desk's data folder, `connection` where the stack is when it is not embedded.
        Raises SupervisorError, for one when another desk uses the folder.
        """
        if not embedded and not connection:
            raise SupervisorError("Without the embedded stack a connection string is needed.")
        folder, log = _prepare(folder)
        with log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # a learner's own random.py must not get in the way
                "-m",
                "desk.supervisor",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # an Interrupt in the notebook is not for it
                limit=_LINE,
            )
        supervisor = cls(process, specs)
        try:
            answer = await supervisor._ask(
                "start", folder=str(folder), connection="" if embedded else connection
            )
        except BaseException:
            await supervisor.stop()
            raise
        supervisor.connection = answer["connection"]
        return supervisor

    @property
    def pid(self) -> int:
        """The supervisor's own process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone, and everything below it."""
        return self._gone

    def listen(self, callback: Callable[[ProcessState], None]) -> Callable[[], None]:
        """Call `callback` on the loop with every change of a process, and with all of them when the monkey comes or
        goes. Returns what ends that."""
        self._listeners.append(callback)

        def remove() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return remove

    async def launch(self, *specs: Spec) -> None:
        """Start these processes, by default those given to `start`, and return when all are up.

        The topics they use must be there. Raises SupervisorError when one does not come up.
        """
        await self._ask("launch", specs=[spec.to_json() for spec in specs or self._specs])

    async def kill(self, name: str, by: str = "code") -> int:
        """SIGKILL the process of that name, "stack" included, and return its pid once it is gone.

        It is replaced at once; a second kill waits for the replacement.
        `by` says who did it, for the log: button, chaos, code or a person's name.
        """
        return await self._ask("kill", name=name, by=by)

    async def restart(self, name: str, *, module: str | None = None, **switches: str | None) -> None:
        """End a process and start it with these switches changed: the others stay, an empty one is taken away.

        `module` puts another module in its place. Returns when it is up again.
        """
        await self._ask("restart", name=name, module=module, switches=switches)

    async def chaos(
        self, on: bool, *, every: float = 3.0, seed: int = 7, names: Sequence[str] | None = None
    ) -> None:
        """Let the chaos monkey kill one of `names` about every so many seconds, or stop it.

        Without names it may take any process but the stack. The same seed plans the same kills.
        """
        await self._ask("chaos", on=on, every=every, seed=seed, names=list(names) if names else None)
        self.monkey = bool(on)
        for state in list(self.states.values()):
            self._tell(state)

    async def stop(self) -> None:
        """End every process, the stack and the supervisor. Stopping again does nothing."""
        with contextlib.suppress(SupervisorError, TimeoutError):
            await asyncio.wait_for(self._ask("stop"), _STOP)
        self._stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._reader

    async def _ask(self, do: str, **fields: Any) -> Any:
        if self._gone:
            raise SupervisorError("The supervisor has ended: start the desk again.")
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._stdin.write(json.dumps({"id": number, "do": do, **fields}).encode() + b"\n")
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _read(self) -> None:
        async for line in self._stdout:
            said = json.loads(line)
            if "state" in said:
                self._tell(ProcessState(**said["state"]))
            elif (answer := self._waiting.get(said["id"])) and not answer.done():
                if "error" in said:
                    answer.set_exception(SupervisorError(said["error"]))
                else:
                    answer.set_result(said["ok"])
        self._gone, self.monkey = True, False
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(SupervisorError("The supervisor has ended: start the desk again."))
        for state in list(self.states.values()):
            if state.state != "stopped":
                self._tell(ProcessState(state.name, 0, "stopped", state.deaths, "The supervisor has ended."))

    def _tell(self, state: ProcessState) -> None:
        self.states[state.name] = state
        for callback in list(self._listeners):
            callback(state)


def _prepare(folder: Path) -> tuple[Path, IO[bytes]]:
    """The folder as an absolute path, and the supervisor's log in it."""
    folder = folder.absolute()
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        return folder, (folder / "logs" / "supervisor.err").open("ab")
    except OSError as error:
        raise SupervisorError(f"The data folder {folder} cannot be used: {error.strerror}.") from None
