"""The records of a small real day: three vans, four orders, the five incidents, seed 7; routing-2 is killed in its
first replan, after the plan was saved. Times begin at 1000."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from desk.analysis.frames import Fold
from desk.analysis.rewind import Rewind

_FILE = Path(__file__).with_name("tuesday.json.gz")


@cache
def records() -> dict[str, list[dict[str, Any]]]:
    """events and positions, each in log order."""
    return json.loads(gzip.decompress(_FILE.read_bytes()))


@cache
def tuesday() -> Rewind:
    """The day rewound."""
    fold = Fold()
    fold.positions(records()["positions"])
    fold.happenings(records()["events"])
    return Rewind("tue", tuple(fold.frames()), sum(map(len, records().values())))
