"""What `python -m bench.rivals run` measured last: the same ticket, killed, on this desk and on other systems."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from desk.analysis.palette import BLUE, GREY, INK, ORANGE, SOFT, VERMILLION
from desk.analysis.picture import Picture, captioned, side_by_side
from desk.analysis.sheet import Sheet
from desk.control.errors import DeskError

Kills = Sequence[Mapping[str, Any]]
FILE = Path(__file__).parents[2] / "bench" / "rivals.json"
_OURS, _PLAIN = "Laser Desk", "plain"
_MARKS = (
    ("first", "first line", ORANGE, "o", -0.22),
    ("step", "next new step", VERMILLION, "D", 0.0),
    ("closed", "closed", BLUE, "s", 0.22),
)
_COUNTED = {
    "tickets": "tickets",
    "lookups": "lookups",
    "questions": "questions",
    "asked": "bank asked",
    "paid": "paid",
    "paid_twice": "paid twice",
}


def read() -> tuple[dict[str, Any], dict[str, Any]]:
    """(about the run, system -> its measurements), as the benchmark wrote them."""
    try:
        found = json.loads(FILE.read_text("utf-8"))
    except OSError:
        raise DeskError(f"The measurements are not there: {FILE} is part of the project's folder.") from None
    return found["about"], found["systems"]


def rivals_table() -> Sheet:
    """A row a system: seconds, everything counted over all its tickets, and lines of code for durability."""
    _, systems = read()
    rows = {}
    for name, system in systems.items():
        figures = system["figures"]
        rows[name] = {
            "first line": _seconds(figures["first_line"]),
            "closed, hold whole": _seconds(figures["closed_if_held"]),
            "20 tickets closed": _seconds(figures["slowest_chaos"]),
            **{spoken: figures["counts"][what] for what, spoken in _COUNTED.items()},
            "lines": system["lines"]["durability"],
        }
    return Sheet(pd.DataFrame.from_dict(rows, orient="index"))


def rivals_plot() -> Picture:
    """After a kill in the hold, after one between the payment and its record, and under chaos; a row a system."""
    about, systems = read()
    figure, (hold, record, chaos) = side_by_side(10.5, 4.4, (3, 3, 2))
    for row, system in enumerate(systems.values()):
        _kills(hold, row, system["a"])
        _kills(record, row, system["b"])
        whole, closed = system["figures"]["closed_if_held"], _median(system["a"], "closed")
        if whole and closed and whole - closed > 0.02:
            hold.plot(whole, row + 0.22, "s", mfc="none", color=BLUE, ms=6)
            _words(hold, whole, row + 0.22, "hold kept whole", BLUE)
        after = [one["after"] for one in system["chaos"] if one["after"] is not None]
        chaos.plot(after, np.linspace(row - 0.3, row + 0.3, len(after)), "s", color=BLUE, ms=4)
    _name_marks(hold, list(systems).index(_PLAIN), systems[_PLAIN]["a"])
    _limit(hold, about["hold"] - about["into hold"], "hold over")
    _limit(chaos, (about["tickets"] - 1) * about["every"] + about["hold"], "last hold over")
    hold.set_title("A: killed in the hold", fontsize=11, loc="left")
    record.set_title("B: killed between payment and record", fontsize=11, loc="left")
    chaos.set_title(f"Chaos: {about['tickets']} tickets closed", fontsize=11, loc="left")
    for axes in (hold, record, chaos):
        axes.set_xlim(0, axes.get_xlim()[1] * 1.03)
        axes.set_xlabel("seconds after the kill" if axes is not chaos else "seconds after the first ticket")
        axes.grid(axis="x", color=SOFT, linewidth=0.4)
        axes.tick_params(axis="y", length=0)
    hold.set_yticks(range(len(systems)), list(systems))
    hold.set_ylim(len(systems) - 0.5, -0.8)
    return captioned(figure, _caption(about, systems), spoken(systems))


def spoken(systems: Mapping[str, Any]) -> str:
    """What the chart shows: each system's medians in A and B, and when its last tickets under chaos were closed."""
    rows = []
    for name, system in systems.items():
        parts = [
            f"{part}: "
            + ", ".join(f"{words} {_seconds(_median(system[key], what))}" for what, words, *_ in _MARKS)
            for part, key in (("A", "a"), ("B", "b"))
        ]
        after = [one["after"] for one in system["chaos"] if one["after"] is not None]
        chaos = f"all closed after {min(after):.2f} to {max(after):.2f}" if after else "not all closed"
        rows.append(f"{name}, {'; '.join(parts)}; chaos: {chaos}")
    return f"A row a system, in seconds. {'. '.join(rows)}."


def _caption(about: Mapping[str, Any], systems: Mapping[str, Any]) -> str:
    first = {name: system["figures"]["first_line"] for name, system in systems.items()}
    best = min((name for name in first if name not in (_OURS, _PLAIN)), key=lambda name: first[name])
    return (
        f"Medians of {about['repetitions']}, grey from the least to the most. First line: {_OURS} after "
        f"{_seconds(first[_OURS])} s, {_PLAIN} Python {_seconds(first[_PLAIN])} s, {best} {_seconds(first[best])} s."
    )


def _kills(axes: Axes, row: int, kills: Kills) -> None:
    """The three marks of one system, with the span of all repetitions."""
    for what, _, colour, mark, shift in _MARKS:
        values = [one[what] for one in kills if one[what] is not None]
        if values:
            axes.plot([min(values), max(values)], [row + shift] * 2, color=SOFT, linewidth=2, zorder=1)
            axes.plot(statistics.median(values), row + shift, mark, color=colour, ms=6, zorder=2)
        if what == "first" and values:
            _words(axes, max(values), row + shift, _seconds(statistics.median(values)), INK)


def _name_marks(axes: Axes, row: int, kills: Kills) -> None:
    """Say what the marks are, on a row where they stand apart."""
    for what, words, colour, _, shift in _MARKS:
        if at := _median(kills, what):
            before = what != "first"
            _words(axes, at, row + shift, words if before else f"{'':12}{words}", colour, before)


def _words(axes: Axes, x: float, y: float, words: str, colour: str, before: bool = False) -> None:
    axes.annotate(
        words, (x, y), (-7 if before else 7, 0), textcoords="offset points", color=colour, fontsize=9,
        ha="right" if before else "left", va="center",
    )  # fmt: skip


def _limit(axes: Axes, at: float, words: str) -> None:
    axes.axvline(at, color=GREY, linewidth=1, linestyle=":")
    _words(axes, at, -0.6, words, GREY, before=True)


def _median(kills: Kills, what: str) -> float | None:
    values = [one[what] for one in kills if one[what] is not None]
    return statistics.median(values) if values else None


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.3f}" if value < 1 else f"{value:.2f}"
