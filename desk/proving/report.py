"""The tables of a sweep, in a terminal and as sections of bench/prove.md. Pure: rows in, text out.

The file keeps a section for each desk's full sweep and one for the last sample; writing one leaves the others.
"""

from collections.abc import Iterable, Mapping, Sequence

from desk.proving.cases import ONCE, WAYS, Row
from desk.proving.plays import DELIVERY, SUPPORT
from desk.proving.relay import KEPT
from desk.wording import counted

_RAW = {
    SUPPORT: ("lookups", "holds", "questions", "refunds", "replies", "bank asked", "paid"),
    DELIVERY: (
        "messages",
        "starts",
        "plans",
        "holds",
        "steps",
        "told",
        "remembered",
        "asked",
        "closed",
        "parcels",
        "disputes",
    ),
}
_RACES = ("operation 132", " set cursors ")
"""Writes that are not made each time: who makes a topic is who comes first; how often a cursor is saved is timing."""
TITLES = {
    "support": "Support desk: every write",
    "delivery": "Delivery desk: every write",
    "sample": "The last sample",
}
"""The sections, in their order."""
_HEAD = """# Killed at every write

`PROVE=full make prove` tries every point, `make prove` a sample. A point is a scenario, an agent, one of its writes
(an operation on a topic or key, and which occurrence of it) and a side: before the stack got it, or after it was
applied and before the reply. A relay between the agent and the stack kills the agent there with SIGKILL. What came of
it is judged from the log, key-value state, views, forks and the bank's file by scripts that import nothing of the desk.

Support: a violation is a ticket not closed once, or otherwise than its case says; a reply, question or refund that is not
one by its key, or has other words or another amount than without a kill; a payment too many, or other than handed over
and entered in the ledger (key, amount, payee); a refund that is not done in the ledger, or for which the bank is asked
after it is; a decision other than the answer that came first, or not acted on; a lookup after a recorded result; a hold
repeated; a dead letter; an outcome of an issue, a claim, a checkpoint or a keyed event missing or too many; a text sent
that is not the one saved; a reply by a process that came up when the ticket was closed, a question put again by one that
came up when it was in the session; a log out of order (answer, ledger, payment, reply, closing); a closed ticket whose session has
not ended.

Delivery: a violation is a parcel not ended once; an exception not closed once; a step not completed once; a change
applied twice; a hold repeated; a customer told twice by key or in two wordings, or a text left unsent; a delay not
remembered once of each customer it was told; a bill that is not one, a dispute other than what the person said (or
where nobody said anything in time), or another amount held back than was asked; a fork left open; a view that differs
from the log; position reports with a gap or going back; a step, a question or a closing by a process whose log lacks
what it needs for it; a log of an exception out of order (problem, each step with its plan, texts or question, closing);
a step asked for again by a workflow that was resumed when the journal had it; a step done or a person asked by a process
that came up when the log had what came of it; and rounds, exceptions, stops, results, decisions, memories, last positions or events other than on the same day without a kill
(except events of lives and retries).

Of both: an operation code that the protocol does not list, by any agent that is killed. Nor may anything be done twice
in a run in which nobody is killed.

Several points may be one frame, and so one kill: an acknowledgement of several records is. *Distinct frames* counts the
frames of single kills, and each run in another way as one.

Repeats are counted raw: in how many runs a thing was done more often than in any without a kill. Ways: *two kills* in one run,
the second within a few writes of the first or anywhere in another process; *answered while dead*: no process of the
agent can connect while the person answers; *stopped and continued*: the process is stopped (SIGSTOP) at the point, cut
off and replaced, and continued (SIGCONT) when its replacement has done the work; *connection kept*: it is not cut off,
only its consumer groups are taken from it (as the stack does by itself to a member that is silent for long), and the
request or reply at which it was stopped goes on when it does; *hung*: stopped until the supervisor's watchdog ends it;
*overtaken*: nobody is killed, two agents write one key, and each waits with its write until the other has one too (the
hits are both). Who is stopped or hung is drawn evenly over the agents. Lines after "as shipped" are comparisons with
something missing on purpose: the pattern (baseline), the bank's payment keys, or both.
"""


def table(
    desk: str, rows: Sequence[Row], undisturbed: Mapping[str, Mapping[str, int]]
) -> list[tuple[str, ...]]:
    """One line an agent, one a way, a total, then the comparisons. "distinct frames": see `distinct`. "repeated": in
    how many runs a thing happened more often, raw, than in the same play without a kill (`undisturbed`, by play).
    """
    raw = _RAW[desk]
    own = [row for row in rows if row.desk == desk]
    shipped = [row for row in own if row.way in WAYS]

    def line(label: str, chosen: Sequence[Row]) -> tuple[str, ...]:
        repeated = [
            sum(row.raw.get(what, 0) > undisturbed[row.play].get(what, 0) for row in chosen) for what in raw
        ]
        hit = sum(row.hit for row in chosen)
        numbers = (len(chosen), distinct(chosen), hit, sum(bool(row.violations) for row in chosen), *repeated)
        return (label, *(str(number) for number in numbers))

    lines = [
        (
            "agent or way",
            "runs",
            "distinct frames",
            "hits",
            "violations",
            *(f"{what} repeated" for what in raw),
        )
    ]
    for agent in dict.fromkeys(row.agent for row in shipped if row.way == ONCE):
        lines.append(line(agent, [row for row in shipped if row.way == ONCE and row.agent == agent]))
    for way in dict.fromkeys(_way(row) for row in shipped if row.way != ONCE):
        lines.append(line(way, [row for row in shipped if _way(row) == way]))
    lines.append(line("all, as shipped", shipped))
    for agent, way in dict.fromkeys((row.agent, row.way) for row in own if row.way not in WAYS):
        lines.append(line(f"{agent}, {way}", [row for row in own if (row.agent, row.way) == (agent, way)]))
    return lines


def _way(row: Row) -> str:
    return row.way + (KEPT if row.places.endswith(KEPT) else "")


def distinct(rows: Iterable[Row]) -> int:
    """How many different kills these are: single ones at one frame are one (an acknowledgement of three records is
    three points and one frame); a run in another way is one by itself.
    """
    rows = list(rows)
    frames = {(row.play, row.frames) for row in rows if row.way == ONCE and row.frames}
    return len(frames) + sum(row.way != ONCE for row in rows)


def about(
    desk: str,
    rows: Sequence[Row],
    points: int,
    scenarios: int,
    seed: int,
    seconds: float,
    workers: int,
    cores: int,
) -> str:
    """What a sweep of a desk was. points: how many there are, tried or not; seconds: of the last go."""
    once = [row for row in rows if row.way == ONCE]
    others = counted(len(rows) - len(once), "run")
    return (
        f"{len(once)} (seed {seed}) of the {points} points of the {desk} desk in {scenarios} scenarios, which are "
        f"{distinct(once)} distinct frames (an acknowledgement of several records is one frame and as many points), "
        f"and {others} in other ways; the last go took {seconds:.0f} s with {counted(workers, 'worker')} on {cores} cores."
    )


def last_line(rows: Iterable[Row]) -> str:
    """ "crash points: N, deaths: N, violations: 0": the distinct points of single kills, and the deaths at them;
    violations of everything as shipped."""
    shipped = [row for row in rows if row.way in WAYS]
    once = [row for row in shipped if row.way == ONCE]
    violations = sum(bool(row.violations) for row in shipped)
    return f"crash points: {len(once)}, deaths: {sum(row.hit for row in once)}, violations: {violations}"


def plain(lines: Sequence[tuple[str, ...]]) -> str:
    """Columns for a terminal."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) if not n else cell.rjust(w) for n, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )  # fmt: skip


def section(about: str, tables: Iterable[Sequence[tuple[str, ...]]], rows: Sequence[Row]) -> str:
    """The text of one section, its title left out."""
    parts = [about]
    for lines in tables:
        head, *body = ["| " + " | ".join(line) + " |" for line in lines]
        parts.append("\n".join([head, "| --- |" + " ---: |" * (len(lines[0]) - 1), *body]))
    shipped = [row for row in rows if row.way in WAYS]
    broken = [f"- {_where(row)}: {'; '.join(row.violations)}" for row in shipped if row.violations]
    missed = [f"- {_where(row)}" for row in shipped if not row.reached]
    if broken:
        parts += ["Violations:", "\n".join(broken)]
    if missed:
        parts += ["Points not reached:", "\n".join(missed)]
    return "\n\n".join([*parts, last_line(rows)])


def _where(row: Row) -> str:
    way = f" ({row.way})" if row.way else ""
    return f"{row.desk}, {row.play}: {row.places}{way}"


def merged(old: str, new: Mapping[str, str], last: str) -> str:
    """bench/prove.md with these sections in place of the old ones, and its last line."""
    kept = {}
    for name, title in TITLES.items():
        _, found, rest = old.partition(f"\n## {title}\n")
        if found:
            kept[name] = rest.partition("\n## ")[0].partition("\n---\n")[0].strip()
    sections = kept | dict(new)
    parts = [f"## {title}\n\n{sections[name]}" for name, title in TITLES.items() if name in sections]
    return "\n\n".join([_HEAD.strip(), *parts, "---", last]) + "\n"


def complete(rows: Iterable[Row]) -> bool:
    """Whether nothing of the desks as shipped was broken, and every point was reached that can be each time."""

    def sure(row: Row) -> bool:
        return not any(write in row.places for write in _RACES)

    return not any(row.violations or (not row.reached and sure(row)) for row in rows if row.way in WAYS)
