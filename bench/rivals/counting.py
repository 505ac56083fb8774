"""What the two books outside say about a run: times after a kill, and everything that happened, counted raw. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.rivals.outside import HOLD, Note


@dataclass(frozen=True)
class Counts:
    """Of one ticket, or of many together. A repeat counts again. asked, paid: what the bank was asked for and paid."""

    tickets: int
    closed: int
    lookups: int
    questions: int
    asked: int
    paid: int
    paid_twice: int

    def __add__(self, other: "Counts") -> "Counts":
        mine, theirs = vars(self), vars(other)
        return Counts(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(frozen=True)
class Recovery:
    """One kill. Seconds from the SIGKILL; None for what did not come. up: another process can work; first: its first
    line for the ticket; step: the first step completed that had not been before, closing included; held: seconds from
    the beginning of the hold to its end, over both processes; counts: of this ticket.
    """

    up: float | None
    first: float | None
    step: float | None
    closed: float | None
    held: float | None
    counts: Counts

    @property
    def closed_if_held(self) -> float | None:
        """`closed`, with what was left out of the hold added: the same ticket for systems that drop a hold's rest."""
        if self.closed is None or self.held is None:
            return None
        return self.closed + max(0.0, HOLD - self.held)


@dataclass(frozen=True)
class Chaos:
    """One run under the monkey. kills: planned kills done; after: seconds from the first ticket to the last one's close,
    None when one stayed open; latency: seconds from opening to closed, of each closed ticket.
    """

    kills: int
    after: float | None
    latency: tuple[float, ...]
    counts: Counts


def count(ticket: str, notes: Iterable[Note], bank_asked: Iterable[str], bank_paid: Iterable[str]) -> Counts:
    """One ticket's counts. bank_asked, bank_paid: the keys in the bank's books, which begin with the ticket's name."""
    what = [note.what for note in notes if note.ticket == ticket]
    paid = sum(key.startswith(f"{ticket}:") for key in bank_paid)
    return Counts(
        tickets=1,
        closed=int("closed" in what),
        lookups=what.count("lookup"),
        questions=what.count("asked"),
        asked=sum(key.startswith(f"{ticket}:") for key in bank_asked),
        paid=paid,
        paid_twice=int(paid > 1),
    )


def recovery(ticket: str, notes: Sequence[Note], killed_at: float, counts: Counts) -> Recovery:
    """What happened to a ticket whose process was killed at that time (epoch seconds)."""
    old = {note.pid for note in notes if note.at <= killed_at}
    own = [note for note in notes if note.ticket == ticket]
    before = {note.what for note in own if note.at <= killed_at}

    def since(found: Iterable[float]) -> float | None:
        first = min(found, default=None)
        return None if first is None else first - killed_at

    after = [note for note in own if note.at > killed_at]
    completed = (note.at for note in after if is_completion(note) and note.what not in before)
    began = min((note.at for note in own if note.what == "hold"), default=None)
    ended = min((note.at for note in own if note.what == "done:hold"), default=None)
    return Recovery(
        up=since(note.at for note in notes if note.what == "up" and note.pid not in old),
        first=since(note.at for note in after if note.pid not in old),
        step=since(completed),
        closed=since(note.at for note in after if note.what == "closed"),
        held=None if began is None or ended is None else ended - began,
        counts=counts,
    )


def is_completion(note: Note) -> bool:
    """Whether a note says that the system has finished a step."""
    return note.what.startswith("done:") or note.what == "closed"


def chaos(opened: dict[str, float], notes: Sequence[Note], kills: int, counts: Counts) -> Chaos:
    """What happened to tickets that were opened at these times (epoch seconds)."""
    closed = {ticket: _closed(ticket, notes) for ticket in opened}
    times = [at for at in closed.values() if at is not None]
    return Chaos(
        kills=kills,
        after=max(times) - min(opened.values()) if len(times) == len(opened) else None,
        latency=tuple(at - opened[ticket] for ticket, at in closed.items() if at is not None),
        counts=counts,
    )


def _closed(ticket: str, notes: Sequence[Note]) -> float | None:
    return min((note.at for note in notes if note.ticket == ticket and note.what == "closed"), default=None)
