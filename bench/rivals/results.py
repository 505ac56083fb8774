"""A run's numbers, to and from `rivals.json`, and the few figures that the report and the course's notebook share."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.rivals.counting import Chaos, Counts, Recovery
from bench.rivals.lines import Lines

OURS = "Laser Desk"
AIM_FIRST, AIM_CHAOS = 0.05, 5.0
"""Seconds: the median of the first line after a kill, and the slowest chaos run."""


@dataclass(frozen=True)
class System:
    """One system's measurements. a, b: one Recovery a repetition."""

    a: tuple[Recovery, ...]
    b: tuple[Recovery, ...]
    chaos: tuple[Chaos, ...]
    lines: Lines

    def median(self, kill: str, what: str) -> float | None:
        """The median seconds of kill "a" or "b"; None when some run has no such time."""
        return median([getattr(one, what) for one in getattr(self, kill)])

    def counts(self, kind: str) -> Counts:
        """Everything counted in "a", "b" or "chaos", over all its runs."""
        first, *rest = (one.counts for one in getattr(self, kind))
        return sum(rest, first)

    @property
    def first_line(self) -> float | None:
        """The median of the first line over all kills of A and B."""
        return median([one.first for one in (*self.a, *self.b)])

    @property
    def slowest_chaos(self) -> float | None:
        """Seconds until all was closed, of the slowest run; None when a ticket stayed open."""
        after = [one.after for one in self.chaos]
        return None if None in after else max(after)

    def figures(self) -> dict[str, Any]:
        """What `rivals.json` says of it in short: seconds, and everything counted over all tickets."""
        counts = [self.counts(kind) for kind in ("a", "b", "chaos")]
        return {
            "first_line": self.first_line,
            "closed_if_held": self.median("a", "closed_if_held"),
            "slowest_chaos": self.slowest_chaos,
            "counts": asdict(sum(counts[1:], counts[0])),
        }


def median(values: Sequence[float | None]) -> float | None:
    """The median, or None when there is nothing or a value is missing."""
    return None if not values or None in values else statistics.median(values)


def write(file: Path, about: dict[str, Any], systems: dict[str, System]) -> None:
    """The JSON beside the report."""
    found = {name: {"figures": system.figures(), **asdict(system)} for name, system in systems.items()}
    result = {"about": about, "systems": found}
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def read(file: Path) -> tuple[dict[str, Any], dict[str, System]]:
    """What `write` wrote."""
    result = json.loads(file.read_text())
    return result["about"], {name: _system(values) for name, values in result["systems"].items()}


def _system(values: dict[str, Any]) -> System:
    return System(
        a=tuple(_counted(Recovery, one) for one in values["a"]),
        b=tuple(_counted(Recovery, one) for one in values["b"]),
        chaos=tuple(_counted(Chaos, {**one, "latency": tuple(one["latency"])}) for one in values["chaos"]),
        lines=Lines(**values["lines"]),
    )


def _counted(kind: Any, values: dict[str, Any]) -> Any:
    return kind(**{**values, "counts": Counts(**values["counts"])})
