"""What has to be drawn anew after some more position reports: only what changed. Pure, no widgets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from desk.delivery.roads import Point


@dataclass(frozen=True)
class Closure:
    """A road that was found closed: where the van stood, on its way from which place to which stop."""

    incident: str
    van: str
    here: Point
    at: str
    stop: str


@dataclass
class Changes:
    """Since the last time: vans that moved, vans that do something else now, legs completed, roads closed."""

    moved: dict[str, Point] = field(default_factory=dict)
    doing: dict[str, str] = field(default_factory=dict)
    legs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    closures: list[Closure] = field(default_factory=list)


class Tracks:
    """A fold of position reports. Points are (lon, lat) degrees."""

    def __init__(self) -> None:
        self.minute = 0.0
        self.where: dict[str, Point] = {}
        self.doing: dict[str, str] = {}
        self._at: dict[str, str] = {}

    def take(self, reports: Iterable[Mapping[str, Any]]) -> Changes:
        """Take in reports, in log order. A van that stands where it stood is not in the answer."""
        changes = Changes()
        before, did = dict(self.where), dict(self.doing)
        for report in reports:
            van, at = report["van"], report["at"]
            self.minute = max(self.minute, report["minute"])
            self.where[van], self.doing[van] = (report["lon"], report["lat"]), report["status"]
            if self._at.setdefault(van, at) != at:
                changes.legs.setdefault(van, []).append((self._at[van], at))
                self._at[van] = at
            if report.get("why") == "closure" and report.get("stop"):
                changes.closures.append(Closure(report["incident"], van, self.where[van], at, report["stop"]))
        changes.moved = {van: point for van, point in self.where.items() if before.get(van) != point}
        changes.doing = {van: status for van, status in self.doing.items() if did.get(van) != status}
        return changes
