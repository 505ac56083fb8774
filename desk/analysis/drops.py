"""Drops per van as a chart: what each van delivered and where nobody was home."""

from collections.abc import Iterable, Mapping

from desk.analysis.frames import Record
from desk.analysis.palette import INK, colour_of_van
from desk.analysis.picture import Picture, canvas, captioned
from desk.delivery.clock import time_of_day
from desk.wording import counted


def drops(delivered: Mapping[str, int], failed: Mapping[str, int], parked: Mapping[str, str]) -> Picture:
    """One bar a van. `parked`: when a van that is off the road at the end left it, as a clock shows it."""
    vans = sorted(delivered)
    figure, axes = canvas(8, 1.2 + 0.42 * max(1, len(vans)))
    told = []
    for row, van in enumerate(vans):
        made, missed = delivered[van], failed.get(van, 0)
        axes.barh(-row, made, height=0.6, color=colour_of_van(van))
        axes.barh(
            -row, missed, left=made, height=0.6, color="white", edgecolor=colour_of_van(van), hatch="////"
        )
        words = f"{made}" + (f" and {missed} failed" if missed else "")
        words += f", off the road at {parked[van]}" if van in parked else ""
        told.append(f"{van}: {words}")
        axes.annotate(
            words, (made + missed, -row), xytext=(6, 0), textcoords="offset points", va="center", color=INK
        )
    axes.set_yticks([-row for row in range(len(vans))], vans)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xlim(0, 1.45 * max([1, *delivered.values()]))
    caption = f"{counted(sum(delivered.values()), 'drop')} made, {sum(failed.values())} failed (hatched)."
    return captioned(figure, caption, f"A bar a van. {'; '.join(told)}.")


def off_the_road(events: Iterable[Record]) -> dict[str, str]:
    """Van -> when it left the road, of those that have not come back (events in log order, each with its minute)."""
    left: dict[str, str] = {}
    for event in events:
        if event["kind"] == "van_parked":
            left[event["van"]] = time_of_day(event["minute"])
        elif event["kind"] == "joined":
            left.pop(event["van"], None)
    return left
