"""The rows of a sweep, kept in a file of JSON lines so that a long sweep can go on where it ended."""

import json
from dataclasses import asdict
from pathlib import Path

from desk.proving.cases import Row


class Rows:
    """`done` holds every row by the name of its case. Without a file they are kept in memory only."""

    def __init__(self, file: Path | None = None) -> None:
        self.done: dict[str, Row] = {}
        self._file = file
        if file and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                name, values = json.loads(line)
                self.done[name] = Row(**{**values, "violations": tuple(values["violations"])})

    def add(self, name: str, row: Row) -> None:
        """Keep a row."""
        self.done[name] = row
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, asdict(row)]) + "\n")

    def forget(self) -> None:
        """The sweep is complete: the next one begins anew."""
        if self._file:
            self._file.unlink(missing_ok=True)
