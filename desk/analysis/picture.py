"""A matplotlib figure with its one caption line, shown in a notebook without pyplot (which is not safe in callbacks)."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "svg.hashsalt": "laser-desk",
    "hatch.linewidth": 1.0,
}
_DOTS_PER_INCH = 160


@dataclass(frozen=True)
class Picture:
    """A chart and the one line that says what to see in it. A notebook shows it; its text form is the caption.

    `words` say what is drawn, for who does not see it; whoever draws makes them from the same data.
    """

    figure: Figure
    caption: str
    words: str

    def __repr__(self) -> str:
        return self.caption

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        png = BytesIO()
        with mpl.rc_context(_STYLE):
            self.figure.savefig(png, format="png", dpi=_DOTS_PER_INCH)
        width, height = (round(side * 96) for side in self.figure.get_size_inches())
        data = {"text/plain": self.caption, "image/png": b64encode(png.getvalue()).decode()}
        return data, {"image/png": {"width": width, "height": height, "alt": f"{self.caption} {self.words}"}}

    def save(self, path: Path) -> Path:
        """Write the picture; the suffix chooses the format (png, svg, pdf). Returns the path."""
        with mpl.rc_context(_STYLE):
            self.figure.savefig(path, dpi=_DOTS_PER_INCH)
        return path


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of this many inches with one pair of axes in the house style."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        return figure, figure.add_subplot()


def side_by_side(width: float, height: float, widths: Sequence[float]) -> tuple[Figure, Sequence[Axes]]:
    """An empty figure of this many inches with axes beside each other that share their rows, so wide in proportion."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        return figure, figure.subplots(1, len(widths), sharey=True, width_ratios=widths)


def captioned(figure: Figure, caption: str, words: str) -> Picture:
    """Write the caption under the chart and wrap both as a Picture; `words` say what is drawn."""
    figure.supxlabel(caption, fontsize=10, style="italic", color="#333333", x=0.01, ha="left")
    return Picture(figure, caption, words)
