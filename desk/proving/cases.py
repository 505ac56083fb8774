"""A run to do: what is played, who is killed where, and in which way; and what came of it."""

from dataclasses import dataclass, field

from desk.proving.frames import Write
from desk.proving.plays import Day, Play
from desk.proving.relay import Point

ONCE, TWICE, ANSWERED, STOPPED, HUNG = "", "two kills", "answered while dead", "stopped and continued", "hung"
OVERTAKEN = "overtaken"
WAYS = (ONCE, TWICE, ANSWERED, STOPPED, HUNG, OVERTAKEN)
"""Of the desks as shipped: killed once, twice in one run, dead while the person answers; stopped, replaced, and
continued when its replacement has done the work; stopped until the watchdog ends it; not killed, but another has
written the key between its reading and its writing.
"""
VARIANTS: dict[str, dict[str, str]] = {
    "baseline": {"baseline": "1"},
    "forgetful bank": {"bank": "forgetful"},
    "baseline, forgetful bank": {"baseline": "1", "bank": "forgetful"},
}
"""Ways that are comparisons, and what the process behind the relay is told besides."""


@dataclass(frozen=True)
class Kill:
    """Who, and where."""

    agent: str
    point: Point


@dataclass(frozen=True)
class Case:
    """One run."""

    play: Play | Day
    kills: tuple[Kill, ...] = ()
    way: str = ONCE

    @property
    def agents(self) -> tuple[str, ...]:
        """Whose writes are watched: those who are killed, or everybody when nobody is."""
        return tuple(dict.fromkeys(kill.agent for kill in self.kills)) or tuple(self.play.agents)

    @property
    def places(self) -> str:
        """Who is killed where, in words."""
        return ", then ".join(f"{kill.agent} {kill.point}" for kill in self.kills)

    @property
    def name(self) -> str:
        """The same in every run: what a row is known by."""
        return " / ".join(filter(None, (self.play.desk, self.play.name, self.places, self.way)))

    def points(self, agent: str) -> tuple[Point, ...]:
        """Where this one is killed."""
        return tuple(kill.point for kill in self.kills if kill.agent == agent)


@dataclass(frozen=True)
class Row:
    """What came of a run. aimed, hit: how many points, and how many of them were reached; violations: sentences;
    raw: how often each thing happened, repeats counted; frames: who was hit at which frame, in words. An
    acknowledgement of three records is one frame, and three points.
    """

    desk: str
    play: str
    agent: str
    places: str
    way: str
    aimed: int
    hit: int
    violations: tuple[str, ...]
    raw: dict[str, int] = field(default_factory=dict)
    frames: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether every point was."""
        return self.hit == self.aimed


@dataclass(frozen=True)
class Seen:
    """What the relays saw of one agent: its writes in order, and how many of them came before a person answered."""

    writes: tuple[tuple[Write, int], ...]
    asked: int = 0


@dataclass(frozen=True)
class Done:
    """A row, and what else is known of a run that nobody disturbed. repeated: what was done twice in it, sentences."""

    row: Row
    seen: dict[str, Seen]
    outcome: dict[str, list[object]] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()


def row(
    case: Case, hit: int, violations: tuple[str, ...], raw: dict[str, int], frames: tuple[str, ...]
) -> Row:
    """The row of a case."""
    play = case.play
    return Row(
        play.desk, play.name, " and ".join(case.agents), case.places, case.way,
        len(case.kills), hit, violations, raw, frames,
    )  # fmt: skip
