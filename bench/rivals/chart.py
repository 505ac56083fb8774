"""`docs/rivals.png`: after a kill and under chaos, system by system."""

import statistics
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from bench.rivals.measure import EVERY, INTO_HOLD, TICKETS
from bench.rivals.outside import HOLD
from bench.rivals.results import System
from desk.analysis.palette import BLUE, GREY, INK, ORANGE, SOFT, VERMILLION

_MARKS = (
    ("first", "first line", ORANGE, "o"),
    ("step", "next new step", VERMILLION, "D"),
    ("closed", "closed", BLUE, "s"),
)


def draw(systems: dict[str, System], file: Path) -> None:
    """Draw and save. Medians with the span of all repetitions; chaos run by run."""
    plt.rcParams["font.family"] = "DejaVu Sans"
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11.5, 3.6), sharey=True, width_ratios=(3, 3, 2), layout="constrained"
    )
    names = list(systems)
    for axes, kill, title in (
        (left, "a", "A: killed in the hold"),
        (middle, "b", "B: killed between effect and record"),
    ):
        for row, name in enumerate(names):
            for shift, (what, _, colour, mark) in zip((-0.2, 0.0, 0.2), _MARKS, strict=True):
                values = [getattr(one, what) for one in getattr(systems[name], kill)]
                found = [value for value in values if value is not None]
                if found:
                    axes.plot([min(found), max(found)], [row + shift] * 2, color=SOFT, lw=2, zorder=1)
                    axes.plot(statistics.median(found), row + shift, mark, color=colour, ms=6, zorder=2)
            whole = systems[name].median(kill, "closed_if_held")
            if whole and whole - systems[name].median(kill, "closed") > 0.02:
                axes.plot(whole, row + 0.2, "s", mfc="none", color=BLUE, ms=6)
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds after the SIGKILL")
        axes.set_title(title, fontsize=10)
        if kill == "a":
            _line(axes, HOLD - INTO_HOLD, "hold over")
    least = (TICKETS - 1) * EVERY + HOLD
    for row, name in enumerate(names):
        for run, chaos in enumerate(systems[name].chaos):
            if chaos.after is not None:
                right.plot(chaos.after, row + (run - 1) * 0.15, "s", color=BLUE, ms=6)
    _line(right, least, "earliest")
    right.set_xlim(left=0)
    right.set_xlabel("seconds until all are closed")
    right.set_title(f"{TICKETS} tickets, kills every 1 to 2 s", fontsize=10)
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.5, -0.8)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color=SOFT, lw=0.4)
        axes.tick_params(axis="y", length=0)
    handles = [plt.Line2D([], [], ls="", marker=mark, color=colour) for _, _, colour, mark in _MARKS]
    handles.append(plt.Line2D([], [], ls="", marker="s", color=BLUE, mfc="none"))
    labels = [*(label for _, label, _, _ in _MARKS), "closed, had the rest of the hold been kept"]
    figure.legend(
        handles, labels, loc="outside lower left", ncols=4, frameon=False, fontsize=9, labelcolor=INK
    )
    figure.savefig(file, dpi=150)
    plt.close(figure)


def _line(axes: Axes, at: float, words: str) -> None:
    axes.axvline(at, color=GREY, lw=1, ls=":")
    axes.annotate(
        words,
        (at, -0.6),
        (-3, 0),
        textcoords="offset points",
        color=GREY,
        fontsize=7.5,
        ha="right",
        va="center",
    )
