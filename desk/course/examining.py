"""exam: an agent is killed at every write of a small job, and the notebook shows what each kill did."""

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from desk.analysis.sheet import Sheet
from desk.control.support import SupportDesk
from desk.proving.exam import Attempt, Exam, examine
from desk.proving.frames import Write
from desk.proving.relay import AFTER, BEFORE
from desk.wording import counted

_TURN = re.compile(r"topic \d+")


@dataclass(frozen=True)
class Report:
    """An exam as a notebook shows it: a sentence, and a row for each write. `.passed` is the mark."""

    exam: Exam

    @property
    def passed(self) -> bool:
        return self.exam.passed

    @property
    def sentence(self) -> str:
        """What came of it, in one line."""
        kills = len(self.exam.attempts)
        if self.passed:
            return (
                f"Passed: {self.exam.agent} was killed {counted(kills, 'time')}, and every job was done once."
            )
        faults = "; ".join(self.exam.faults) or "a kill did not come"
        return f"Not yet, after {kills} of {counted(self.exam.planned, 'kill')}: {faults}."

    @property
    def sheet(self) -> Sheet:
        """One row a write, in the order of the job: what came of a kill before it and of one after it."""
        rows: dict[str, dict[str, str]] = {}
        for attempt in self.exam.attempts:
            label = worded(attempt.point.write, attempt.point.occurrence)
            rows.setdefault(label, {BEFORE: "", AFTER: ""})[attempt.point.side] = self._what(attempt)
        table = pd.DataFrame([(label, *sides.values()) for label, sides in rows.items()])
        table.columns = ["write", "killed before it", "killed after it"]
        return Sheet(table.set_index("write"))

    def _what(self, attempt: Attempt) -> str:
        if attempt.faults:
            return "; ".join(attempt.faults)
        again = [step for step, n in attempt.outcome.begun.items() if n > self.exam.calm.begun.get(step, 0)]
        return "done" + (f", {' and '.join(again)} begun again" if again else "")

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.sheet!r}"

    def _repr_html_(self) -> str:
        return f"<p>{self.sentence}</p>{self.sheet._repr_html_()}"


def worded(write: Write, occurrence: int) -> str:
    """A write as a learner knows it: "turn 3", "event 1", "checkpoints the job", "acknowledgement"."""
    if write.operation == "send":
        return f"{'turn' if _TURN.fullmatch(write.what) else write.what.removeprefix('desk.').rstrip('s')} {occurrence}"
    return "acknowledgement" if write.operation == "acknowledge" else write.what


async def exam(desk: SupportDesk, agent: str, operation: str, **body: Any) -> Report:
    """Give this agent a job again and again, each time killed at another write. Ends early when it is clear it fails."""
    return Report(await examine(desk, agent, operation, body))
