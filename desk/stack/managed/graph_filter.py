"""The filter language on one graph element: a tree of all, any, not and pred over named values.

Elements have no columns, so a filter is decided in Python. It means what it means in queries: a missing field
fails every predicate, values compare as numbers when both are or read as numbers, else as text.
"""

from collections.abc import Mapping
from typing import Any

from desk.stack.query.filters import plain
from desk.stack.query.kinds import number_in, text_of
from desk.stack.wire.query import QueryFault
from desk.stack.wire.shape import MAP, TEXT, Shape, ShapeError, check

MAX_NODES, MAX_DEPTH = 4096, 64
_PREDICATE: Shape = {"field": TEXT, "op": TEXT, "value": MAP}
_ORDERINGS = {
    "lt": lambda sign: sign < 0,
    "lte": lambda sign: sign <= 0,
    "gt": lambda sign: sign > 0,
    "gte": lambda sign: sign >= 0,
}
OPERATORS = frozenset({"eq", "ne", "in", "contains", "prefix", *_ORDERINGS})


def checked(node: Any) -> Mapping[str, Any]:
    """The filter, or ShapeError that says what is wrong with it."""
    _check(node, 1, [0])
    return node


def _check(node: Any, depth: int, seen: list[int]) -> None:
    seen[0] += 1
    if depth > MAX_DEPTH or seen[0] > MAX_NODES:
        raise ShapeError(f"a filter has at most {MAX_NODES} nodes and depth {MAX_DEPTH}")
    tag, body = next(iter(node.items())) if type(node) is dict and len(node) == 1 else (None, None)
    if tag in ("all", "any") and type(body) is list and body:
        for child in body:
            _check(child, depth + 1, seen)
    elif tag == "not":
        _check(body, depth + 1, seen)
    elif tag == "pred":
        predicate = check(body, _PREDICATE)
        if predicate["op"] not in OPERATORS or type(predicate["value"].get("kind")) is not str:
            raise ShapeError("a predicate is a field, a comparison and a typed value")
        try:
            wanted = plain(predicate["value"])
        except QueryFault as error:  # queries refuse such a value in their own terms
            raise ShapeError(str(error)) from None
        if (predicate["op"] == "in") != isinstance(wanted, list):
            raise ShapeError("`in`, and only `in`, takes a list")
    else:
        raise ShapeError("a filter is one of all, any, not, pred")


def matches(node: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Does a checked filter hold for these values?"""
    ((tag, body),) = node.items()
    if tag == "all":
        return all(matches(child, values) for child in body)
    if tag == "any":
        return any(matches(child, values) for child in body)
    if tag == "not":
        return not matches(body, values)
    return _holds(values.get(body["field"]), body["op"], plain(body["value"]))


def _holds(value: Any, op: str, wanted: Any) -> bool:
    if wanted is None:
        return (value is None) == (op == "eq") if op in ("eq", "ne") else False
    if value is None or isinstance(value, list):
        return False
    if op == "in":
        return any(item is not None and _order(value, item) == 0 for item in wanted)
    if op == "contains":
        return text_of(wanted) in text_of(value)
    if op == "prefix":
        return text_of(value).startswith(text_of(wanted))
    order = _order(value, wanted)
    if op in ("eq", "ne"):
        return (order == 0) == (op == "eq")
    return _ORDERINGS[op](order)


def _order(one: Any, other: Any) -> int:
    """Minus one, zero or one: as numbers when both are or read as some, else as text."""
    pair = _number(one), _number(other)
    left, right = pair if None not in pair else (text_of(one), text_of(other))
    return (left > right) - (left < right)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    return number_in(value) if isinstance(value, str) else value
