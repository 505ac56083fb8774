"""The table of a sweep, in a terminal and as bench/prove.md. Pure: rows in, text out."""

from collections.abc import Iterable, Sequence

from desk.proving.stage import VARIANTS, Row

_RAW = ("lookups", "holds", "questions", "refunds", "replies", "bank asked", "paid")
_HEAD = ("agent", "points", "deaths", "violations", *(f"{what} repeated" for what in _RAW))


def table(rows: Sequence[Row], undisturbed: dict[str, dict[str, int]]) -> list[tuple[str, ...]]:
    """One line an agent and a total. "repeated": in how many runs a thing happened more often, raw, than in the
    same play without a kill (`undisturbed`, by play).
    """
    lines = [_HEAD]
    for variant in VARIANTS:
        chosen = [row for row in rows if row.variant == variant]
        for agent in dict.fromkeys(row.agent for row in chosen):
            label = f"{agent}, {variant}" if variant else agent
            lines.append(_line(label, [r for r in chosen if r.agent == agent], undisturbed))
        if not variant:
            lines.append(_line("all, as shipped", chosen, undisturbed))
    return lines


def _line(label: str, rows: Sequence[Row], undisturbed: dict[str, dict[str, int]]) -> tuple[str, ...]:
    repeated = [
        sum(row.raw.get(what, 0) > undisturbed[row.play].get(what, 0) for row in rows) for what in _RAW
    ]
    numbers = (len(rows), sum(r.killed for r in rows), sum(bool(r.violations) for r in rows), *repeated)
    return (label, *(str(number) for number in numbers))


def last_line(rows: Iterable[Row]) -> str:
    """ "crash points: N, deaths: N, violations: 0", of the shipped agents."""
    shipped = [row for row in rows if not row.variant]
    deaths = sum(row.killed for row in shipped)
    return f"crash points: {len(shipped)}, deaths: {deaths}, violations: {sum(bool(r.violations) for r in shipped)}"


def plain(lines: Sequence[tuple[str, ...]]) -> str:
    """Columns for a terminal."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) if not n else cell.rjust(w) for n, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )  # fmt: skip


def markdown(lines: Sequence[tuple[str, ...]], rows: Sequence[Row], about: str) -> str:
    """bench/prove.md."""
    head, *body = ["| " + " | ".join(line) + " |" for line in lines]
    rule = "| --- |" + " ---: |" * (len(lines[0]) - 1)
    broken = [f"- {row.play} / {row.agent} / {row.point}: {'; '.join(row.violations)}" for row in rows if row.violations and not row.variant]  # fmt: skip
    missed = [
        f"- {row.play} / {row.agent} / {row.point}" for row in rows if not row.killed and not row.variant
    ]
    parts = [
        "# Killed at every write: the support desk",
        about,
        "Each point is a write of one agent (an operation on a topic or key, and which occurrence of it) and a side: "
        "before the stack got it, or after it was applied and before the reply. The agent is killed there with SIGKILL "
        "by a relay between it and the stack; the judge reads the log, key-value state and the bank's file and imports "
        "nothing of the desk. Repeats are counted raw: in how many runs a thing was done more often than without a "
        "kill. A violation would be a ticket not closed once, a reply, question or refund that is not one by its key, a "
        "second payment, a lookup after a recorded result, a hold repeated, or a dead letter.",
        "Lines with a comma after the agent are comparisons, a few kills each where something is missing on purpose: the "
        "pattern (baseline), the bank's payment keys, or both. Their violations show what the missing thing is for.",
        "\n".join([head, rule, *body]),
    ]
    if broken:
        parts += ["## Violations", "\n".join(broken)]
    if missed:
        parts += ["## Points not reached", "\n".join(missed)]
    parts.append(last_line(rows))
    return "\n\n".join(parts) + "\n"
