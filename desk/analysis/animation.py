"""The day as an animated GIF: the streets are drawn once, each frame only what moves."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from desk.analysis.frames import Frame
from desk.analysis.palette import colour_of_van
from desk.analysis.whereabouts import STOPS, ground, map_size, mark_stops, mark_van, trail
from desk.delivery.clock import time_of_day

_MINUTES_A_PICTURE = 2
_SECONDS_A_PICTURE = 0.2
_LAST = 2.0  # seconds the last picture stays
_DOTS_PER_INCH = 76
_COLOURS = 64


def save(frames: Sequence[Frame], path: Path) -> None:
    """Write the GIF; a picture every two demo minutes. Nothing is written for no frames."""
    if not frames:
        return
    shown_at = sorted({*range(0, len(frames), _MINUTES_A_PICTURE), len(frames) - 1})
    # The last frame has every colour there is. With one palette for all, a picture stores only what has changed.
    palette = next(_pictures(frames, shown_at[-1:])).quantize(_COLOURS, dither=Image.Dither.NONE)
    pictures = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in _pictures(frames, shown_at)]
    shown = [int(_SECONDS_A_PICTURE * 1000)] * (len(pictures) - 1) + [int(_LAST * 1000)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=shown, loop=0, optimize=False)


def _pictures(frames: Sequence[Frame], shown_at: Sequence[int]) -> Iterator[Image.Image]:
    figure = Figure(figsize=map_size(), dpi=_DOTS_PER_INCH, facecolor="white")
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
            for van, spot in frame.vans.items():
                mark_van(axes, van, spot)
            axes.text(
                0.98, 0.96, time_of_day(frame.minute), transform=axes.transAxes, fontsize=22, ha="right"
            )
            new = [artist for artist in axes.get_children() if artist not in before]
            for artist in sorted(new, key=lambda artist: artist.get_zorder()):
                axes.draw_artist(artist)
                artist.remove()
            yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
