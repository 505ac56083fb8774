"""The rows of a sweep, kept in a file of JSON lines so that a long sweep can go on where it ended.

Each row says of which code it is: a desk that has been changed, or is judged otherwise, is swept anew. Who leads a
process to its kill is not part of that (`control`, and here the relay, the plays, the draws, the report): a row tells at
which frame it came and what the judges found afterwards, whatever led there.
"""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from desk.proving.cases import Row
from desk.proving.plays import DELIVERY, SUPPORT

_ROOT = Path(__file__).parent.parent.parent
_ROOMS = ("runtime", "supervisor", "outside", "stack")
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


class Rows:
    """`done` holds every row by the name of its case. Without a file they are kept in memory only."""

    def __init__(self, file: Path | None = None) -> None:
        self.done: dict[str, Row] = {}
        self._file, self._codes = file, {desk: code(desk) for desk in _OWN}
        if file and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                name, values, *made = json.loads(line)
                if made == [self._codes[values["desk"]]]:
                    tuples = {field: tuple(values[field]) for field in ("violations", "frames")}
                    self.done[name] = Row(**values | tuples)

    @property
    def are_kept(self) -> bool:
        """Whether they outlive this process."""
        return self._file is not None

    def add(self, name: str, row: Row) -> None:
        """Keep a row."""
        self.done[name] = row
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, asdict(row), self._codes[row.desk]]) + "\n")

    def forget(self) -> None:
        """The sweep is complete: the next one begins anew."""
        if self._file:
            self._file.unlink(missing_ok=True)
