"""The demo clock: minutes since the day began at nine, what a minute is called, and windows. Pure.

A van moves 120 m each half second of a watched day and needs 3 demo minutes for a kilometre, so one tick is 0.36
demo minutes and, at DESK_SPEED=1, one real second is 43.2 demo seconds.
"""

import math

OPENS = 9 * 60  # minutes after midnight at which demo minute 0 is
MINUTES_PER_METRE = 3 / 1000
MINUTES_PER_DROP = 4.0
TICK_METRES = 120.0
TICK = TICK_METRES * MINUTES_PER_METRE  # demo minutes
TICK_SECONDS = 0.5  # real seconds at DESK_SPEED=1
WINDOW = 60
HALF_HOUR = 30


def time_of_day(minute: float) -> str:
    """Demo minute 42.5 as a clock shows it: "09:42"."""
    hours, minutes = divmod(OPENS + math.floor(minute), 60)
    return f"{hours % 24:02}:{minutes:02}"


def window(minute: float) -> tuple[int, int]:
    """The hour promised for an arrival at this minute: it starts on the half hour before. Demo minutes."""
    start = math.floor(minute / HALF_HOUR) * HALF_HOUR  # the day begins on one
    return start, start + WINDOW


def window_text(minute: float) -> str:
    """That hour in words: "between 10:30 and 11:30"."""
    start, end = window(minute)
    return f"between {time_of_day(start)} and {time_of_day(end)}"


def real_seconds(ticks: float, speed: float) -> float:
    """How long these ticks last in real seconds; 0 when the clock does not wait."""
    return 0.0 if math.isinf(speed) else ticks * TICK_SECONDS / speed
