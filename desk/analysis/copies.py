"""Which copy of an agent did which steps: counted between the quarantines, and drawn over time."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from desk.analysis.palette import SOFT, colour_of
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.sheet import Sheet
from desk.analysis.story import Event
from desk.wording import counted

COPIES = ("routing-1", "routing-2")
_CHANGES = {"quarantined": "quarantine of", "reinstated": "reinstating"}


def shares(events: Sequence[Event], copies: Sequence[str] = COPIES) -> Sheet:
    """Steps begun by each copy: until the first quarantine or reinstatement, until the next one, and so on."""
    rows: list[list[int]] = [[0] * len(copies)]
    labels = ["at first"]
    for event in events:
        if event["kind"] in _CHANGES:
            labels.append(f"after {_CHANGES[event['kind']]} {event['agent']}")
            rows.append([0] * len(copies))
        elif event["kind"] == "start" and event["agent"] in copies:
            rows[-1][copies.index(event["agent"])] += 1
    return Sheet(pd.DataFrame(rows, columns=list(copies), index=pd.Index(labels, name="steps begun")))


def shares_plot(events: Sequence[Event], copies: Sequence[str] = COPIES) -> Picture:
    """Steps begun by each copy so far, over time; grey where one was in quarantine."""
    begins = [e for e in events if e["kind"] == "start" and e["agent"] in copies]
    figure, axes = canvas(9, 3.6)
    zero = begins[0]["at"] if begins else 0.0
    last = max(0.1, begins[-1]["at"] - zero) if begins else 1.0
    out: dict[str, float] = {}
    shaded: list[tuple[str, float, float]] = []
    for event in events:
        if event["kind"] == "quarantined":
            out[event["agent"]] = event["at"] - zero
        elif event["kind"] == "reinstated" and event["agent"] in out:
            shaded.append((event["agent"], out.pop(event["agent"]), event["at"] - zero))
    shaded += [(agent, since, last) for agent, since in out.items()]
    for agent, begin, end in shaded:
        _shade(axes, agent, begin, end)
    ends = [sum(e["agent"] == copy for e in begins) for copy in copies]
    for number, copy in enumerate(copies):
        at = [e["at"] - zero for e in begins if e["agent"] == copy]
        path = [0, *at, last], [0, *range(1, len(at) + 1), len(at)]
        axes.step(*path, where="post", color=colour_of(copy), linewidth=2.4)
        aside = 9 - 18 * number if len(set(ends)) == 1 else 0  # lines that end together
        axes.annotate(
            copy, (last, len(at)), xytext=(6, aside), textcoords="offset points", va="center", color=colour_of(copy)
        )  # fmt: skip
    axes.set_xlabel("seconds since the first step")
    axes.set_ylabel("steps begun")
    axes.set_xlim(0, last * 1.14)
    axes.set_ylim(bottom=0)
    caption = "Flat in the grey: a copy in quarantine is sent nothing, and its process keeps running."
    begun = [f"{copy} began {counted(end, 'step')}" for copy, end in zip(copies, ends, strict=True)]
    grey = [f"{agent} was in quarantine from second {a:.1f} to {b:.1f}" for agent, a, b in shaded]
    return captioned(
        figure, caption, f"A rising line a copy, over {last:.1f} s. {'; '.join([*begun, *grey])}."
    )


def _shade(axes: Axes, agent: str, begin: float, end: float) -> None:
    axes.axvspan(begin, end, color=SOFT, alpha=0.4, linewidth=0)
    axes.annotate(
        f"{agent} in quarantine", ((begin + end) / 2, 1), xycoords=("data", "axes fraction"), ha="center", va="top",
        fontsize=9,
    )  # fmt: skip
