"""Rewind: a delivery day as it was at any minute, from two fresh replay cursors and nothing else.

Not from key-value state, not from a process's memory: whoever has the log has the day.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import laser_sdk as ls
import pandas as pd

from desk.analysis import animation
from desk.analysis import frames as folding
from desk.analysis.animation import Animation
from desk.analysis.drops import drops, off_the_road
from desk.analysis.export import Exported, export
from desk.analysis.frames import Fold, Frame, Record
from desk.analysis.gantt import gantt
from desk.analysis.picture import Picture, captioned
from desk.analysis.recovery import recovery_chart
from desk.analysis.spans import recovering
from desk.analysis.whereabouts import whereabouts
from desk.control.errors import DeskError
from desk.delivery.clock import time_of_day
from desk.delivery.layout import EVENTS, POSITIONS
from desk.runtime.records import record
from desk.wording import counted, passed_over


@dataclass(frozen=True)
class Rewind:
    """One day. `minutes[n]` is the frame of demo minute n."""

    day: str
    minutes: tuple[Frame, ...]
    read: int
    """How many records the two cursors gave."""
    foreign: int = 0
    """How many of them were not the desk's and were passed over."""

    def __repr__(self) -> str:
        last = time_of_day(len(self.minutes) - 1) if self.minutes else "never"
        words = f"{counted(len(self.minutes), 'frame')} from {counted(self.read, 'record')}; the day ends at {last}"
        return "; ".join(filter(None, (words, passed_over(self.foreign))))

    @cached_property
    def frames(self) -> pd.DataFrame:
        """One row a minute and van: where it was, what it did, its metres, its drops so far."""
        return folding.table(self.minutes)

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row an event, tagged with its minute."""
        return folding.happenings(self.minutes)

    @property
    def records(self) -> list[Record]:
        """The events themselves, in log order."""
        return [event for frame in self.minutes for event in frame.events]

    def gantt(self) -> Picture:
        """The agents' steps, kills and replays."""
        return gantt(sorted(self.records, key=lambda event: event["at"]))

    def drops(self) -> Picture:
        """What each van delivered. Raises DeskError for an empty day."""
        last = self._lived()[-1]
        return drops(last.delivered, last.failed, off_the_road(self.records))

    def map(self, minute: int | None = None) -> Picture:
        """Where every van was at the end of a demo minute; without one, at the end of the day. Raises DeskError."""
        ends = len(self._lived()) - 1
        if minute is not None and not (isinstance(minute, Integral) and 0 <= minute <= ends):
            raise DeskError(f"The day has the minutes 0 to {ends}, not {minute!r}.")
        return whereabouts(self.minutes, minute)

    def animation(self) -> Animation:
        """The whole day as a small moving picture; `export` writes a larger one. Raises DeskError for an empty day."""
        return animation.inline(self._lived())

    def recovery(self) -> Picture:
        """How long after each death its agent was up, and at work again."""
        chart = recovery_chart(recovering(sorted(self.records, key=lambda event: event["at"])))
        caption = "Each ring is a new process coming up, each dot it taking up the work again."
        return captioned(chart.figure, caption, chart.words)

    def _lived(self) -> tuple[Frame, ...]:
        if not self.minutes:
            raise DeskError(f"Nothing is on the log of day {self.day}: there is nothing to show.")
        return self.minutes

    def export(self, folder: str | Path) -> Exported:
        """Pictures (PNG and SVG), tables (CSV), an animation (GIF) and one page that works from disk (HTML)."""
        return export(self, Path(folder))


async def rewind(laser: ls.Laser, day: str) -> Rewind:
    """Read that day's two topics from their first record to their last. `laser`: connected with the day's stream."""
    fold = Fold()
    read = await _read(laser, POSITIONS, fold.positions) + await _read(laser, EVENTS, fold.happenings)
    return Rewind(day, tuple(fold.frames()), read, fold.foreign)


async def _read(laser: ls.Laser, topic: str, take: Callable[[Iterable[Any]], None]) -> int:
    """Poll a new cursor until it has nothing more: one poll gives ten thousand records at most."""
    cursor, read = laser.topic(topic).replay(), 0
    while messages := await cursor.poll():
        take(record(message) for message in messages)
        read += len(messages)
    return read
