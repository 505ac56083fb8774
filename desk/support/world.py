"""The shop around the desk: orders, customers, knowledge base and policy, read from data/support once a process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from desk.support.policy import Terms

FOLDER = Path(__file__).parent.parent.parent / "data" / "support"


@dataclass(frozen=True)
class World:
    """orders: number -> record with charges in cents; customers: id -> name and history; knowledge: articles."""

    orders: Mapping[str, dict[str, Any]]
    customers: Mapping[str, Mapping[str, Any]]
    knowledge: tuple[Mapping[str, Any], ...]
    terms: Terms


@cache
def load() -> World:
    """Everything in data/support."""
    policy = _read("policy")
    terms = Terms(
        today=date.fromisoformat(policy["today"]),
        limit_cents=policy["limit_cents"],
        duplicate_days=policy["duplicate_days"],
        return_days=policy["return_days"],
        rules=policy["rules"],
    )
    return World(_read("orders"), _read("customers"), tuple(_read("knowledge")), terms)


def _read(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
