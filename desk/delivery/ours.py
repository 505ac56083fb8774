"""Which records on the topics of a day are the desk's own: those that have the shape their kind says. Pure.

Anybody may publish there, and a lesson on publishing does. What a fold could not use is not the desk's, and whoever
reads the topics passes it over. Every record of a day comes by here: what is compared with something it cannot be
compared with is not looked at twice.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache, lru_cache
from math import inf
from operator import itemgetter
from typing import Any, TypeGuard

import cbor2
import laser_sdk as ls

from desk.delivery.driving import Van
from desk.delivery.exceptions import STEPS
from desk.delivery.incidents import HALTING, INCIDENTS, TITLES
from desk.delivery.roads import load_places
from desk.runtime.records import record

_DOING = ("idle", "driving", "making", "stopped", "parked")
_LONGEST = 1e9  # demo minutes: more than a day that was left running for years has
_REPORT = itemgetter("van", "minute", "lon", "lat", "metres", "status", "at", "stop")
_VAN = {field.name for field in fields(Van)}

_STEP = ("incident", "step")
_MOVE = ("minute", "van", "after")
_DROP = (*_MOVE, "stop")
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "joined": _MOVE,
    "van_parked": _MOVE,
    "waiting": _MOVE,
    "departed": _DROP,
    "arrived": _DROP,
    "delivered": _DROP,
    "failed": (*_DROP, "incident", "attempt"),
    "stopped": (*_MOVE, "incident", "why"),
    "order": ("minute", "stop", "incident"),
    "returned": ("minute", "van", "stop"),
    "incident": ("minute", "incident", "state"),
    "moot": ("minute", "incident", "van", "text"),
    "bill": ("minute", "incident", "bill", "state"),
    "wanted": ("what",),
    "granted": ("wish", "text"),
    "exception": ("incident", "state"),
    "resume": ("incident",),
    "retry": ("incident",),
    "closed": ("incident",),
    "start": _STEP,
    "checkpoint": _STEP,
    "holding": _STEP,
    "replay": _STEP,
    "step": _STEP,
    "fork": _STEP,
    "asked": (*_STEP, "hold", "text"),
    "told": (*_STEP, "stop", "text"),
    "parked": _STEP,
    "redriven": _STEP,
    "fixed": ("incident",),
    "bill_answer": ("incident", "text"),
    **dict.fromkeys(("approved", "declined", "disputed", "paid", "undecided"), ("incident", "by")),
}
"""What an event of this kind is of no use without; a kind that is not here needs nothing."""


@dataclass(frozen=True)
class Request:
    """An agent is asked for a step of an exception."""

    incident: str
    step: str
    agent: str


def event(message: ls.Message) -> dict[str, Any] | None:
    """The event this message carries; None for anything else that somebody put on the topic."""
    said = record(message)
    return said if is_event(said) else None


def report(message: ls.Message) -> dict[str, Any] | None:
    """The position report this message carries; None for anything else that somebody put on the topic."""
    said = record(message)
    return said if is_position(said) else None


def request(message: ls.Message) -> Request | None:
    """The step this message on the inbox asks an agent for; None for a bill's check, an answer, and what is foreign."""
    try:
        said = cbor2.loads(bytes(message.payload))
        body = json.loads(said["body"]) if said["kind"] == "command" else {}
        found = Request(body["exc"]["id"], body["step"], said["target"])
    except (KeyError, TypeError, ValueError, RecursionError, cbor2.CBORDecodeError):
        return None
    return found if all(map(_is_word, astuple(found))) else None


def is_position(record: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a van's report: who, when, where, doing what, between which places; why it stopped, if it did."""
    known = _places()
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
            and _is_van_name(van)
            and ("why" not in record or (record["why"] in HALTING and _is_word(record["incident"])))
        )
    except (KeyError, TypeError):
        return False


def is_event(record: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is an event: what every event has, what its kind is of no use without, each of its own type."""
    try:
        return (
            {"id", "at", "kind", "agent", "pid"} <= record.keys()
            and all([name not in _IS or _IS[name](value) for name, value in record.items()])
            and all([record[name] != "" for name in _NEEDS.get(record["kind"], ())])
            and (not record.get("step") or record["incident"] != "")
            and ("after" not in record or record["van"] == record["after"]["name"])
            and _can_be_looked_up(record)
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _can_be_looked_up(event: Mapping[str, Any]) -> bool:
    """Whether a state is one of those its kind has, where others look it up, and what goes with it is there."""
    kind = event["kind"]
    if kind == "exception":
        return event["state"] in STEPS or event["state"] == "bill"
    if kind == "incident":
        return event["state"] in TITLES and "van" in event
    return kind != "wanted" or event["what"] != "vans" or "count" in event


@cache
def _places() -> frozenset[str]:
    return frozenset(load_places())


@lru_cache(maxsize=64)
def _is_van_name(name: str) -> bool:
    return re.fullmatch(r"van-\d+", name) is not None


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value < inf


def _is_place(value: Any) -> bool:
    return value == "" or value in _places()


def _is_van(value: Any) -> bool:
    """Whether this is what `Van.to_json` gives."""
    return (
        value.keys() == _VAN
        and _is_van_name(value["name"])
        and value["doing"] in _DOING
        and all(_is_place(value[name]) for name in ("at", "to", "off"))
        and value["at"] != ""
        and (value["doing"] != "driving" or value["to"] != "")
        and all(_is_number(value[name]) for name in ("back", "since", "metres"))
        and (value["back"] == 0 or value["off"] not in ("", value["at"]))
        and value["why"] in ("", *HALTING)
        and isinstance(value["incidents"], list)
        and all(map(_is_word, value["incidents"]))
    )


_IS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("id", "kind", "agent", "incident", "step", "state", "by", "text", "wish"), _is_word),
    "at": _is_number,
    "pid": _is_whole,
    "minute": lambda value: _is_number(value) and value < _LONGEST,
    "van": lambda value: value == "" or _is_van_name(value),
    "stop": _is_place,
    "after": _is_van,
    "why": lambda value: value in HALTING,
    "what": lambda value: value in (*INCIDENTS, "vans"),
    "bill": lambda value: isinstance(value, dict),
    **dict.fromkeys(("attempt", "hold", "planned", "count"), _is_whole),
}
"""The type of each field, whatever the kind."""
