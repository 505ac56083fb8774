"""The rows of a sweep, kept in a file of JSON lines so that a long sweep can go on where it ended."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from desk.proving.frames import Write
from desk.proving.relay import Point
from desk.proving.stage import Row


class Rows:
    """`done` holds every row by the name of its case. Without a file they are kept in memory only."""

    def __init__(self, file: Path | None = None) -> None:
        self.done: dict[str, Row] = {}
        self._file = file
        if file and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                name, values = json.loads(line)
                self.done[name] = _row(values)

    def add(self, name: str, row: Row) -> None:
        """Keep a row."""
        self.done[name] = row
        if self._file:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, {**asdict(row), "seen": []}]) + "\n")


def _row(values: dict[str, Any]) -> Row:
    point = values["point"]
    return Row(
        **{
            **values,
            "point": Point(Write(**point["write"]), point["occurrence"], point["side"]),
            "violations": tuple(values["violations"]),
            "seen": (),
        }
    )
