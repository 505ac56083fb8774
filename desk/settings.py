"""Every DESK_* and LASER_* setting: one frozen dataclass, read once by whoever owns the desk, passed down.

A wrong value raises `SettingsError`, whose text names the setting, what was wrong and what to do.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """A setting that cannot be used. Its text is one sentence a person can act on."""


def _seconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 <= value < math.inf):
        raise SettingsError(f"{name}={text!r} is not a number of seconds: use 0 or more, such as 8.")
    return value


def _speed(name: str, text: str) -> float:
    if text == "max":
        return math.inf
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value < math.inf):
        raise SettingsError(f"{name}={text!r} is not a speed: use a number above 0, or max.")
    return value


def _seed(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingsError(f"{name}={text!r} is not a whole number: use one such as 7.") from None


def _llm(name: str, text: str) -> str:
    if text not in ("mock", "claude", "api"):
        raise SettingsError(f"{name}={text!r} is not a writer: use mock, claude or api.")
    return text


def _text(name: str, text: str) -> str:
    return text


def _path(name: str, text: str) -> Path:
    return Path(text).expanduser() if text.startswith("~/") else Path(text)


def _setting(variable: str, default: Any, parse: Any, doc: str, secret: bool = False) -> Any:
    return field(
        default=default,
        metadata={"variable": variable, "parse": parse, "doc": doc, "secret": secret},
        repr=not secret,
    )


@dataclass(frozen=True)
class Settings:
    """What a desk is told. Field metadata holds the environment variable and the README's sentence."""

    connection: str = _setting(
        "LASER_CONNECTION_STRING",
        "",
        _text,
        "Where the stack is, as user:password@host:port. Empty: the embedded stack is started.",
        secret=True,
    )
    data: Path = _setting("DESK_DATA", Path(".desk"), _path, "Folder for everything a desk keeps on disk.")
    policy_pause: float = _setting(
        "DESK_POLICY_PAUSE",
        0.0,
        _seconds,
        "Real seconds the resolver holds at its policy step, so that a person can kill it.",
    )
    step_pause: float = _setting(
        "DESK_STEP_PAUSE", 0.0, _seconds, "Real seconds routing holds between saving a plan and applying it."
    )
    llm: str = _setting(
        "DESK_LLM", "mock", _llm, "Who writes texts: mock (templates), claude (claude -p) or api (Anthropic)."
    )
    llm_model: str = _setting("DESK_LLM_MODEL", "claude-haiku-4-5", _text, "The model the api writer asks.")
    llm_timeout: float = _setting(
        "DESK_LLM_TIMEOUT", 20.0, _seconds, "Real seconds to wait for a model before its template is used."
    )
    api_key: str = _setting("ANTHROPIC_API_KEY", "", _text, "Key for the api writer.", secret=True)
    speed: float = _setting(
        "DESK_SPEED",
        1.0,
        _speed,
        "How fast the demo clock runs: 1 makes a real second 43.2 demo seconds; max does not wait.",
    )
    seed: int = _setting("DESK_SEED", 7, _seed, "Seed of everything random: chaos, customers, incidents.")

    def having(self, **changes: Any) -> "Settings":
        """A copy with these fields changed. Raises SettingsError for a name that does not exist or a bad value.

        Values may be of the field's own type or text as in the environment.
        """
        known = {f.name: f for f in fields(self)}
        parsed = {}
        for name, value in changes.items():
            if name not in known:
                raise SettingsError(f"There is no setting {name!r}: choose from {', '.join(sorted(known))}.")
            meta = known[name].metadata
            parsed[name] = meta["parse"](meta["variable"], str(value))
        return replace(self, **parsed)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """Read every variable that is set and not empty. Raises SettingsError."""
        given = {
            f.name: environ[f.metadata["variable"]]
            for f in fields(cls)
            if environ.get(f.metadata["variable"])
        }
        return cls().having(**given)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the trip to another process; `from_json` is the way back."""
        return {k: "max" if v == math.inf else str(v) for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Settings":
        """What `to_json` gave."""
        return cls().having(**values)
