"""The rows of a sweep, kept in a file of JSON lines so that a long sweep can go on where it ended.

Each row says of which code it is: a desk that has been changed, or is judged otherwise, is swept anew; changed while it
is swept, the sweep ends. Who leads a process to its kill is not part of that (here the relay, the plays, the draws, the
report): a row tells at which frame it came and what the judges found afterwards, whatever led there. `control` is: it
writes too, what a person decides and what is sent again.
"""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from desk.proving.cases import Row
from desk.proving.plays import DELIVERY, SUPPORT

_ROOT = Path(__file__).parent.parent.parent
_ROOMS = ("runtime", "supervisor", "control", "outside", "stack")
_TRIED = (
    *(f"desk/{room}/**/*.py" for room in _ROOMS),
    "desk/settings.py",
    "desk/wording.py",
    "desk/proving/operations.py",  # judges too: what may be asked for
)
_OWN = {
    SUPPORT: ("desk/support/**/*.py", "data/support/**/*", "desk/proving/invariants.py"),
    DELIVERY: ("desk/delivery/**/*.py", "data/delivery/**/*", "desk/proving/day_invariants.py"),
}
_CLIENT = "laser-sdk"


def code(desk: str) -> str:
    """What of a desk is tried and who judges it, as one short text: another when any of it is changed."""
    digest = hashlib.sha256(importlib.metadata.version(_CLIENT).encode())
    for place in (*_TRIED, *_OWN[desk]):
        for file in sorted(file for file in _ROOT.glob(place) if file.is_file()):
            digest.update(str(file.relative_to(_ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


class CodeChanged(Exception):
    """The code is another than when the sweep began. Its text is a sentence for a person."""


class Tried:
    """The code that is tried. `codes`: each desk's as it is in the beginning, and as it is to stay."""

    def __init__(self) -> None:
        self.codes = {desk: code(desk) for desk in _OWN}

    def still(self, desk: str) -> str:
        """The same. Raises CodeChanged when it is another now: agents are started from what is there, so nobody knows
        of which code a run is that has just ended.
        """
        if code(desk) != self.codes[desk]:
            raise CodeChanged(
                f"The code of the {desk} desk, or of who judges it, was changed while it was tried: start again."
            )
        return self.codes[desk]


def refusal(group: BaseExceptionGroup) -> str:
    """What is to be said when all that these say is that the code was changed; otherwise raises them."""
    changed, others = group.split(CodeChanged)
    if others or not changed:
        raise group
    while isinstance(changed, BaseExceptionGroup):
        changed = changed.exceptions[0]
    return str(changed)


class Rows:
    """`done` holds every row by the name of its case. Without a file they are kept in memory only."""

    def __init__(self, file: Path | None = None) -> None:
        self.done: dict[str, Row] = {}
        self._file, self._tried = file, Tried()
        if file and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                name, values, *made = json.loads(line)
                if made == [self._tried.codes[values["desk"]]]:
                    tuples = {field: tuple(values[field]) for field in ("violations", "frames")}
                    self.done[name] = Row(**values | tuples)

    @property
    def are_kept(self) -> bool:
        """Whether they outlive this process."""
        return self._file is not None

    def add(self, name: str, row: Row) -> None:
        """Keep a row. Raises CodeChanged."""
        made = self._tried.still(row.desk)
        self.done[name] = row
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, asdict(row), made]) + "\n")

    def forget(self) -> None:
        """The sweep is complete: the next one begins anew."""
        if self._file:
            self._file.unlink(missing_ok=True)
