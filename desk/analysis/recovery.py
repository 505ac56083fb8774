"""Time to recover, kill by kill, judged from the log: until the next process is up, until the ticket goes on."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from desk.analysis.palette import GREY, INK, colour_of
from desk.analysis.picture import Picture, canvas, captioned
from desk.analysis.story import DEATHS, DONE, Event
from desk.wording import counted

COLUMNS = ["agent", "by", "up", "working"]


def recoveries(events: Iterable[Event]) -> pd.DataFrame:
    """One row a death: agent, by; up: seconds to the next start of that agent; working: seconds to the first thing
    its next process wrote about a handoff the dead one had in its hands, NaN when it had none.

    `killed` is written before the SIGKILL, so the last words of the dead may stand behind it.
    """
    rows: list[dict[str, Any]] = []
    held: dict[Any, set[str]] = {}
    nobody: tuple[dict[str, Any], float, set[str], Any] = ({}, 0.0, set(), None)
    open_rows: dict[Any, tuple[dict[str, Any], float, set[str], Any]] = {}
    for event in events:
        kind, agent, pid, step = event["kind"], event.get("agent"), event.get("pid"), event.get("step")
        if kind in DEATHS:
            row = {"agent": agent, "by": event.get("by", ""), "up": float("nan"), "working": float("nan")}
            waiting = open_rows.get(agent, nobody)[2]
            rows.append(row)
            open_rows[agent] = (row, event["at"], held.pop(pid, set()) | waiting, pid)
            continue
        row, since, lost, dead = open_rows.get(agent, nobody)
        if kind == "agent_up" and row:
            row["up"] = event["at"] - since
        elif step is not None:
            hands = lost if row and pid == dead else held.setdefault(pid, set())
            (hands.discard if kind == DONE else hands.add)(step)
            if step in lost and pid != dead:
                lost.clear()
                row["working"] = event["at"] - since
    return pd.DataFrame(rows, columns=COLUMNS)


def recovery_chart(events: Sequence[Event]) -> Picture:
    """Every death as a dot: filled where a ticket was waiting for the next process, hollow where none was."""
    table = recoveries(events)
    agents = sorted(set(table["agent"]))
    figure, axes = canvas(9, 1.5 + 0.7 * max(1, len(agents)))
    for row, agent in enumerate(agents):
        mine = table[table["agent"] == agent]
        heights = [(i * 7) % 11 * 0.05 for i in range(len(mine))]
        spread = [height - sum(heights) / len(heights) - row for height in heights]
        colour = colour_of(agent)
        axes.scatter(mine["up"] * 1000, spread, s=34, facecolors="none", edgecolors=colour, linewidths=1.4)
        axes.scatter(mine["working"] * 1000, spread, s=34, color=colour)
        if mine["up"].isna().all():  # the stack, for one, writes nothing
            axes.annotate(
                f"{counted(len(mine), 'death')}: nothing on the log says when it was up again", (0, -row),
                xytext=(6, 0), textcoords="offset points", va="center", fontsize=9, color=GREY,
            )  # fmt: skip
        axes.hlines(spread, mine["up"] * 1000, mine["working"] * 1000, color=colour, linewidth=0.8, alpha=0.6)
    working = table["working"].dropna() * 1000
    if len(working):
        axes.axvline(working.median(), color=INK, linewidth=1, linestyle=":")
        axes.annotate(
            f"median {working.median():.0f} ms", (working.median(), 0.62), xytext=(4, 0),
            textcoords="offset points", fontsize=9, va="center",
        )  # fmt: skip
    axes.set_yticks([-row for row in range(len(agents))], agents)
    axes.set_ylim(-max(1, len(agents)) + 0.5, 0.8)
    axes.set_xlim(left=0)
    axes.set_xlabel("milliseconds after the kill")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    caption = "Each ring is a new process coming up, each dot the ticket going on in it."
    return captioned(figure, caption, spoken(table))


def spoken(table: pd.DataFrame) -> str:
    """What the chart shows: per agent how many deaths, after how long it was up, after how long at work again."""
    parts = []
    for agent, mine in table.groupby("agent"):
        up, working = (_between(mine[column].dropna() * 1000) for column in ("up", "working"))
        words = f"{agent}: {counted(len(mine), 'death')}"
        words += f", up again after {up}" if up else ", nothing on the log says when it was up again"
        parts.append(words + (f", the work going on after {working}" if working else ""))
    return f"{'; '.join(parts) or 'Nobody died'}."


def _between(milliseconds: pd.Series) -> str:
    if milliseconds.empty:
        return ""
    least, most = f"{milliseconds.min():.0f}", f"{milliseconds.max():.0f}"
    times = f" ({len(milliseconds)} times)" if len(milliseconds) > 1 else ""
    return f"{least} ms" if least == most else f"{least} to {most} ms{times}"
