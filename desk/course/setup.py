"""set_up: is this machine and this kernel what the lessons need? One row a part, and what to do where it is not."""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import pandas as pd
from packaging.version import Version

from desk.analysis.sheet import Sheet

NEEDS: Mapping[str, tuple[str, str]] = {
    "Python": ("3.11", "make the environment anew with a newer Python"),
    "ipykernel": (
        "7.4",
        "older ones hold clicks back while a cell waits: run make venv, then choose its kernel",
    ),
    "laser-sdk": ("0.8.2", "run make venv, then choose its kernel"),
    "ipywidgets": ("8.1", "run make venv, then choose its kernel"),
    "matplotlib": ("3.10", "run make venv, then choose its kernel"),
}
"""Part -> (oldest version that will do, what to do about an older one)."""


def set_up() -> Sheet:
    """Look at this kernel. Versions are judged, not shown: the table is the same on every machine that will do."""
    return judged({part: _found(part) for part in NEEDS})


def judged(found: Mapping[str, str]) -> Sheet:
    """The verdict on these versions; "" stands for a part that is not there."""
    rows = []
    for part, (oldest, cure) in NEEDS.items():
        ok = bool(found[part]) and Version(found[part]) >= Version(oldest)
        here = "fine" if ok else f"{found[part] or 'missing'}: {cure}"
        rows.append((part, f"{oldest} or later", here))
    return Sheet(pd.DataFrame(rows, columns=["part", "needed", "here"]).set_index("part"))


def held_clicks() -> str:
    """What to say at the start of a desk when this kernel holds clicks back while a cell waits, else ""."""
    oldest, cure = NEEDS["ipykernel"]
    here = _found("ipykernel")
    return "" if here and Version(here) >= Version(oldest) else f"ipykernel is {here or 'missing'}: {cure}"


def _found(part: str) -> str:
    if part == "Python":
        return ".".join(map(str, sys.version_info[:3]))
    try:
        return version(part)
    except PackageNotFoundError:
        return ""
