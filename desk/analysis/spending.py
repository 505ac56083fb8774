"""What the steps cost and how long they took, from the events alone. Repeats count: they were paid for too."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import pandas as pd

from desk.analysis.palette import colour_of
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.sheet import Sheet
from desk.analysis.story import DONE, Event, distinct
from desk.control.support import SupportDesk
from desk.wording import counted

_NO_WORK = frozenset({"approved", "declined", "holding", "new_code"})
"""What takes a person's time, or nobody's."""
_TICKS = (0, 1, 10, 100, 1000, 10_000)


def spent(support: SupportDesk, tickets: Iterable[str], prices: Mapping[str, float]) -> Sheet:
    """One row a step with a price: how often it was done, what it costs each time, what it came to, in cents."""
    done = [event["kind"] for ticket in tickets for event in support.events(ticket)]
    times = {step: done.count(step) for step in prices}
    rows = [(step, times[step], str(each), round(times[step] * each, 4)) for step, each in prices.items()]
    rows.append(("together", sum(times.values()), "", round(sum(row[3] for row in rows), 4)))
    return Sheet(pd.DataFrame(rows, columns=["step", "times", "cents each", "cents"]).set_index("step"))


def durations(events: Sequence[Event], tickets: Iterable[str]) -> pd.DataFrame:
    """One row a step of a ticket up to its end: step, agent, milliseconds since the event of that ticket before it.

    A death in between is in the time of the step that was done again.
    """
    rows = []
    for ticket in tickets:
        own = distinct(e for e in events if e.get("ticket") == ticket and e["kind"] != DONE)
        end = next((n for n, event in enumerate(own) if event["kind"] == "closed"), len(own))
        rows += [
            (event["kind"], event["agent"], max(0.0, event["at"] - before["at"]) * 1000)
            for before, event in pairwise(own[: end + 1])
            if event["kind"] not in _NO_WORK
        ]
    return pd.DataFrame(rows, columns=["step", "agent", "ms"])


def latency_plot(support: SupportDesk, tickets: Iterable[str]) -> Picture:
    """A row a step in the order of their first coming, a dot each time it was done, a line at the median."""
    table = durations(support.events(), tickets)
    steps = list(dict.fromkeys(table["step"]))
    figure, axes = canvas(9, 1.4 + 0.36 * max(1, len(steps)))
    for row, step in enumerate(steps):
        mine = table[table["step"] == step]
        spread = [((i * 7) % 11 - 5) * 0.05 - row for i in range(len(mine))]
        axes.scatter(mine["ms"], spread, s=26, color=[colour_of(agent) for agent in mine["agent"]], alpha=0.7)
        axes.vlines(mine["ms"].median(), -row - 0.38, -row + 0.38, color="black", linewidth=1.6)
    axes.set_yticks([-row for row in range(len(steps))], [step.replace("_", " ") for step in steps])
    axes.set_xscale("symlog", linthresh=1)
    ticks = [tick for tick in _TICKS if tick <= 2 * table["ms"].max()]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(0, 1.5 * table["ms"].max())
    axes.set_xlabel("milliseconds since the ticket's event before it")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    parts = [
        f"{step.replace('_', ' ')}: {counted(len(mine), 'dot')}, median {mine.median():.1f} ms, at most {mine.max():.1f}"
        for step, mine in ((step, table["ms"][table["step"] == step]) for step in steps)
    ]
    caption = "Each dot is a step of one ticket, each line the median of its step."
    return captioned(figure, caption, f"{counted(len(steps), 'row')} from the top. {'; '.join(parts)}.")
