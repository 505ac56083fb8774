"""A day as files to take along: pictures, tables, an animation, and one page that works from disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from desk.analysis import animation
from desk.analysis.page import page
from desk.analysis.sheet import html

if TYPE_CHECKING:
    from desk.analysis.rewind import Rewind

PICTURES = ("gantt", "drops", "map", "recovery")
WHAT = {
    ".png": "picture",
    ".svg": "the same, to scale up",
    ".csv": "table",
    ".gif": "animation, a picture every two minutes",
    ".html": "the day with a slider: open it in a browser, no network needed",
}


@dataclass(frozen=True)
class Exported:
    """What was written. A notebook shows the listing; sizes are left out, since they differ a little by day."""

    folder: Path
    files: tuple[str, ...]

    def _table(self) -> pd.DataFrame:
        rows = [(name, WHAT[Path(name).suffix]) for name in self.files]
        return pd.DataFrame(rows, columns=["file", "what it is"]).set_index("file")

    def __repr__(self) -> str:
        return self._table().to_string()

    def _repr_html_(self) -> str:
        return html(self._table())


class ExportError(RuntimeError):
    """The files cannot be written, or there is nothing to write. Its text says why, for a person."""


def export(rewind: "Rewind", folder: Path) -> Exported:
    """Write everything into `folder`, which is made if need be. Raises ExportError."""
    if not rewind.minutes:
        raise ExportError(f"Nothing is on the log of day {rewind.day}: there is nothing to export.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in PICTURES:
            picture = getattr(rewind, name)()
            for suffix in (".png", ".svg"):
                picture.save(folder / f"{name}{suffix}")
        rewind.frames.to_csv(folder / "frames.csv")
        rewind.events.to_csv(folder / "events.csv")
        animation.save(rewind.minutes, folder / "day.gif")
        (folder / "rewind.html").write_text(page(rewind.day, rewind.minutes, rewind.read), encoding="utf-8")
    except OSError as error:
        raise ExportError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    names = [f"{name}{suffix}" for name in PICTURES for suffix in (".png", ".svg")]
    return Exported(folder, (*sorted(names), "events.csv", "frames.csv", "day.gif", "rewind.html"))
