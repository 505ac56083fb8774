"""Which records on the two topics of a day are the desk's own. Pure.

Anybody may publish there, and a lesson on publishing does. What a frame or a chart could not use is not the desk's.
Every record of a day comes by here: what is compared with something it cannot be compared with is not looked at twice.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from operator import itemgetter
from typing import Any, TypeGuard

from desk.analysis.streets import places

_LONGEST = 100_000  # demo minutes: more than a day that was left running over a weekend has
_REPORT = itemgetter("van", "minute", "lon", "lat", "metres", "status", "at", "stop")
_WORDS = ("agent", "van", "stop", "incident", "step", "state", "by", "text")
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "delivered": ("van",),
    "failed": ("van",),
    "joined": ("van",),
    "van_parked": ("van",),
    "exception": ("incident", "state"),
    "closed": ("incident",),
}
"""What an event of this kind is of no use without."""


def is_position(record: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a van's report: who, when, where, doing what, between which places."""
    known = places()
    try:
        van, minute, lon, lat, metres, status, at, stop = _REPORT(record)
        return (
            0 <= minute < _LONGEST
            and -180 <= lon <= 180
            and -90 <= lat <= 90
            and 0 <= metres < inf
            and at in known
            and (stop == "" or stop in known)
            and isinstance(status, str)
            and _is_van(van)
        )
    except (KeyError, TypeError):
        return False


def is_event(record: Any) -> bool:
    """Whether this is an event: its id, time and kind, and what its kind is of no use without."""
    try:
        said = record.get
        minute, kind = said("minute"), record["kind"]
        return (
            isinstance(record["id"], str)
            and isinstance(kind, str)
            and 0 <= record["at"] < inf
            and (minute is None or 0 <= minute < _LONGEST)
            and isinstance(said("pid", 0), int)
            and all([isinstance(said(word, ""), str) for word in _WORDS])
            and (kind not in _NEEDS or all(map(said, _NEEDS[kind])))
            and (not said("step") or bool(said("incident")))
        )
    except (AttributeError, KeyError, TypeError):
        return False


@lru_cache(maxsize=64)
def _is_van(name: str) -> bool:
    return re.fullmatch(r"van-\d+", name) is not None
