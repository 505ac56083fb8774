"""The page that will be asked for next, made while the client reads the one before.

Begun only for a client that has asked for a second page, and only while no other query runs. A page made ahead is
the reply to exactly one question: the same query, the same place, the same snapshot. What the snapshot pins cannot
change, so a page made early is the page that would be made now; when the two snapshots differ it is not used.
"""

from collections import OrderedDict
from collections.abc import Hashable

from desk.stack.query.relation import Snapshot
from desk.stack.query.runner import Job

KEPT = 4  # pages; each holds at most so many bytes:
MAX_BYTES = 1 << 20


class Ahead:
    """The newest KEPT pages nobody has asked for yet. Belongs to the event-loop thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Snapshot, Job]] = OrderedDict()

    def keep(self, question: Hashable, snapshot: Snapshot, job: Job) -> None:
        """Remember a job for whoever asks `question`; the job whose place it takes is stopped."""
        self._kept[question] = snapshot, job
        job.future.add_done_callback(lambda _: self._done(question, job))
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1][1].stop("cancelled")

    def take(self, question: Hashable, snapshot: Snapshot) -> Job | None:
        """The job that makes this page, running or done; None when there is none, or one of another snapshot."""
        seen, job = self._kept.pop(question, (None, None))
        if job is not None and seen != snapshot:
            job.stop("cancelled")
            return None
        return job

    def _done(self, question: Hashable, job: Job) -> None:
        """A page that failed or came out large is not kept: it will be made when it is asked for."""
        failed = job.future.cancelled() or job.future.exception() is not None
        unfit = failed or len(job.future.result().rows) > MAX_BYTES
        if unfit and self._kept.get(question, (None, None))[1] is job:
            del self._kept[question]
