"""Tickets and answers as files, for a worker whose system brings no queue: what must be done is what lies in `inbox`."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

_LOOK = 0.02  # seconds between two looks


class Inbox:
    """The files of one worker."""

    def __init__(self, folder: Path) -> None:
        self.tickets, self.answers = folder / "inbox", folder / "answers"
        self.tickets.mkdir(exist_ok=True)
        self.answers.mkdir(exist_ok=True)

    def serve(self, work: Callable[[str], None]) -> None:
        """Give every ticket to `work`, in a thread of its own, until killed."""
        begun: set[str] = set()
        while True:
            for ticket in sorted(set(os.listdir(self.tickets)) - begun):
                begun.add(ticket)
                threading.Thread(target=work, args=(ticket,), daemon=True).start()
            time.sleep(_LOOK)

    def answer(self, ticket: str) -> bool:
        """Wait for a person's answer."""
        while not (self.answers / ticket).exists():
            time.sleep(_LOOK)
        return True

    def forget_answer(self, ticket: str) -> None:
        """Whoever asks again wants another answer."""
        (self.answers / ticket).unlink(missing_ok=True)

    def finished(self, ticket: str) -> None:
        """This ticket need not be done again."""
        (self.tickets / ticket).unlink(missing_ok=True)
