"""What a desk process is told at birth, and the trip of that to another process."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from desk.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One process of a desk. The supervisor fills in `connection` when the owner leaves it empty."""

    name: str
    """Name of the process; for an agent also its id and its consumer group."""
    module: str
    """Dotted path of a module with `async def main(me: Process) -> None`, imported in the process itself."""
    stream: str
    events_topic: str
    folder: Path
    """The desk's data folder."""
    settings: Settings = field(default_factory=Settings)
    switches: Mapping[str, str] = field(default_factory=dict)
    """What is different about this one process, such as {"baseline": "1"}."""
    connection: str = field(default="", repr=False)
    """user:password@host:port, without options."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the way back."""
        values = asdict(self)
        return {
            **values,
            "folder": str(self.folder),
            "settings": self.settings.to_json(),
            "switches": dict(self.switches),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Spec":
        """What `to_json` gave."""
        return cls(
            **{
                **values,
                "folder": Path(values["folder"]),
                "settings": Settings.from_json(values["settings"]),
            }
        )
