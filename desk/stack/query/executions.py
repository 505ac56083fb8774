"""What is remembered of queries by their execution id: for status, cancelling, and pages asked by cursor alone."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from desk.stack.query.runner import Job, Stopped

KEPT = 10_000


@dataclass
class Execution:
    """One query: its latest page's progress. Times are epoch microseconds, sizes bytes."""

    id: bytes
    query: dict[str, Any]
    started_us: int
    state: str = "queued"
    finished_us: int | None = None
    scanned: int = 0
    produced: int = 0
    rows: int = 0
    error: Any = None
    job: Job | None = None

    def begin(self) -> None:
        """A thread took it (called there)."""
        if self.state == "queued":
            self.state = "running"

    def end(self, state: str, now_us: int, error: Any = None) -> None:
        self.state, self.finished_us, self.error = state, max(now_us, self.started_us), error
        self.job = None

    def cancel(self) -> None:
        """Stop it if it is still queued or running."""
        job = self.job
        if job is not None:
            job.stop("cancelled")
            if not job.future.done():
                job.future.set_exception(Stopped("cancelled"))

    def wire(self) -> dict[str, Any]:
        status = {"execution_id": self.id, "state": self.state, "started_at_micros": self.started_us}
        if self.finished_us is not None:
            status["finished_at_micros"] = self.finished_us
        status.update(scanned_bytes=self.scanned, produced_bytes=self.produced, row_count=self.rows)
        if self.error is not None:
            status["error"] = self.error
        return status


class Executions:
    """The newest KEPT executions, in memory only: after a restart an id is unknown."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Execution] = OrderedDict()

    def start(self, execution_id: bytes, query: dict[str, Any], now_us: int) -> Execution:
        """A new execution, or the next page of a known one."""
        known = self._kept.pop(execution_id, None)
        started = known.started_us if known else now_us
        execution = self._kept[execution_id] = Execution(execution_id, query, started)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return execution

    def get(self, execution_id: bytes) -> Execution | None:
        return self._kept.get(execution_id)
