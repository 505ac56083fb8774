"""The world outside every system: the shop, the person's screen and the bank, and the two books they keep.

Books: `notes.jsonl`, one line for each thing that happened, and the bank's own file. A line is written by one
`write` to a file opened for appending, so it is whole and survives the SIGKILL of whoever wrote it. Only the standard
library and the bank are imported here: the rivals' workers use this from their own environments.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desk.outside.bank import Bank

HOLD = 1.0
"""Seconds of the ticket's hold."""
CENTS = 4900
STEPS = ("lookup", "hold", "ask", "approve", "refund")
"""What can be noted as done, in order; closing the ticket is the end."""
_STOP = "stop_after_paying"


@dataclass(frozen=True)
class Note:
    """One line. at: epoch seconds; what: up, begun, lookup, hold, asked, paid, closed or done:<step>."""

    at: float
    pid: int
    ticket: str
    what: str


class Outside:
    """The world of one run, in one folder. Processes share it."""

    def __init__(self, folder: Path) -> None:
        self.bank = Bank(folder / "bank.sqlite")
        self.file = folder / "notes.jsonl"
        self._stop = folder / _STOP
        self._book = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, ticket: str, what: str) -> None:
        """Write down that this happened now, in this process."""
        line = {"at": time.time(), "pid": os.getpid(), "ticket": ticket, "what": what}
        os.write(self._book, json.dumps(line).encode() + b"\n")

    def up(self) -> None:
        """This process can work."""
        self.note("", "up")

    def begun(self, ticket: str) -> None:
        """The ticket's code runs, for the first time or again."""
        self.note(ticket, "begun")

    def done(self, ticket: str, step: str) -> None:
        """The system has this step; called by the line that comes after it."""
        self.note(ticket, f"done:{step}")

    def holding(self, ticket: str) -> None:
        """The hold begins."""
        self.note(ticket, "hold")

    def look_up(self, ticket: str) -> dict[str, Any]:
        """Ask the shop for the ticket's order."""
        self.note(ticket, "lookup")
        return {"order": ticket, "charges": [CENTS, CENTS]}

    def ask(self, ticket: str) -> None:
        """Show a person the question whether to refund."""
        self.note(ticket, "asked")

    def pay(self, ticket: str, key: str) -> int:
        """Ask the bank for the refund under this key; returns the number of the payment."""
        receipt = self.bank.pay(key, CENTS, ticket, f"refund of {ticket}")
        self.paid(ticket)
        return receipt.payment

    def paid(self, ticket: str) -> None:
        """The bank has answered. Holds still here, once, when a kill is planned for this place."""
        self.note(ticket, "paid")
        if self._stop.exists():
            self._stop.unlink()
            time.sleep(60)

    def close(self, ticket: str) -> None:
        """The ticket is closed."""
        self.note(ticket, "closed")

    def plan_stop(self) -> None:
        """Whoever pays next holds still between the effect and its record, so that it can be killed there."""
        self._stop.touch()

    def notes(self) -> list[Note]:
        """Everything written down so far."""
        return parse(self.file.read_text().splitlines())


def parse(lines: Sequence[str]) -> list[Note]:
    """Lines of the book as notes."""
    return [Note(**json.loads(line)) for line in lines]
