"""The day as an animated GIF: the streets are drawn once, each frame only what moves."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from desk.analysis.frames import Frame
from desk.analysis.palette import colour_of_van
from desk.analysis.whereabouts import STOPS, ground, map_size, mark_stops, mark_vans, spoken, trail
from desk.delivery.clock import time_of_day

_MINUTES_A_PICTURE = 2
_SECONDS_A_PICTURE = 0.2
_LAST = 2.0  # seconds the last picture stays
_DOTS_PER_INCH = 76
_INLINE_MINUTES, _INLINE_DOTS = 4, 56  # in a notebook, which keeps it as text
_COLOURS = 255


@dataclass(frozen=True)
class Animation:
    """A GIF as a notebook shows it, the one line that says what to see in it, and words for who does not see it."""

    gif: bytes
    caption: str
    words: str

    def __repr__(self) -> str:
        return self.caption

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data = {"text/plain": self.caption, "image/gif": b64encode(self.gif).decode()}
        return data, {"image/gif": {"alt": f"{self.caption} {self.words}"}}


def inline(frames: Sequence[Frame]) -> Animation:
    """The day for a notebook: smaller, and a picture every four demo minutes. `frames`: at least one."""
    gif = BytesIO()
    _write(frames, gif, _INLINE_MINUTES, _INLINE_DOTS)
    ends = time_of_day(frames[-1].minute)
    caption = f"The day from {time_of_day(frames[0].minute)} to {ends}, again and again."
    return Animation(
        gif.getvalue(),
        caption,
        f"Vans leave the depot and draw their trails. At the end: {spoken(frames[-1])}",
    )


def save(frames: Sequence[Frame], path: Path) -> None:
    """Write the GIF; a picture every two demo minutes. Nothing is written for no frames."""
    if frames:
        _write(frames, path, _MINUTES_A_PICTURE, _DOTS_PER_INCH)


def _write(frames: Sequence[Frame], to: Path | BytesIO, minutes: int, dots: int) -> None:
    shown_at = sorted({*range(0, len(frames), minutes), len(frames) - 1})
    # The last frame has every colour there is. With one palette for all, a picture stores only what has changed.
    whole = next(_pictures(frames, shown_at[-1:], dots))
    # The usual median cut has no white and pale vans: few points are a van's.
    palette = whole.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    pictures = [
        p.quantize(palette=palette, dither=Image.Dither.NONE) for p in _pictures(frames, shown_at, dots)
    ]
    a_picture = int(_SECONDS_A_PICTURE * 1000 * minutes / _MINUTES_A_PICTURE)
    shown = [a_picture] * (len(pictures) - 1) + [int(_LAST * 1000)]
    pictures[0].save(
        to, "GIF", save_all=True, append_images=pictures[1:], duration=shown, loop=0, optimize=False
    )


def _pictures(frames: Sequence[Frame], shown_at: Sequence[int], dots: int) -> Iterator[Image.Image]:
    figure = Figure(figsize=map_size(), dpi=dots, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    with mpl.rc_context({"font.family": "DejaVu Sans"}):
        axes = figure.add_axes((0, 0, 1, 1))
        ground(axes)
        canvas.draw()
        empty = canvas.copy_from_bbox(figure.bbox)
        for number in shown_at:
            frame = frames[number]
            canvas.restore_region(empty)
            before = set(axes.get_children())
            for van in frame.vans:
                path = trail(frames[: number + 1], van)
                axes.plot(*zip(*path, strict=True), color=colour_of_van(van), linewidth=2.2, alpha=0.75)
            for state in STOPS:
                mark_stops(axes, frame, state)
            mark_vans(axes, frame)
            axes.text(
                0.98, 0.96, time_of_day(frame.minute), transform=axes.transAxes, fontsize=22, ha="right"
            )
            new = [artist for artist in axes.get_children() if artist not in before]
            for artist in sorted(new, key=lambda artist: artist.get_zorder()):
                axes.draw_artist(artist)
                artist.remove()
            yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
