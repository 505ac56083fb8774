"""Predicates as SQL: a filter tree and a scope of names in, an expression and bound parameters out.

A missing field fails every predicate, `ne` too. SQL's third truth value therefore never gets under a NOT:
negations are pushed down to the leaves, and a negated leaf is `(leaf) IS NOT TRUE`.

Comparisons follow the SDK's documentation: numeric if both sides are numbers (or read as such), else as text.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from desk.stack.query.kinds import I64_MAX, I64_MIN, number_in, text_of
from desk.stack.wire.query import BOOLEAN, DOUBLE, LONG, STRING, invalid

OPERATORS = {"eq": "=", "ne": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


class Term(NamedTuple):
    """An SQL expression and the kind of its values; no kind: the field does not exist, the value is null."""

    sql: str
    kind: str | None


Scope = Callable[[str], Term]


MAX_BOUND = 32_766  # SQLite's own


class Bindings:
    """Bound parameters, numbered so that an expression may be used twice or moved."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def __call__(self, value: Any) -> str:
        if len(self.values) == MAX_BOUND:
            raise invalid(f"a query compares with at most {MAX_BOUND} values")
        self.values.append(value)
        return f"?{len(self.values)}"


def condition(node: Mapping[str, Any], scope: Scope, bind: Bindings, *, negated: bool = False) -> str:
    """A checked filter tree as SQL that is true exactly for the rows it keeps."""
    ((tag, body),) = node.items()
    if tag == "not":
        return condition(body, scope, bind, negated=not negated)
    if tag == "pred":
        leaf = predicate(body["field"], body["op"], body["value"], scope, bind)
        return f"({leaf}) IS NOT TRUE" if negated else leaf
    parts = [condition(child, scope, bind, negated=negated) for child in body]
    return joined(parts, "AND" if (tag == "all") != negated else "OR")


def joined(parts: Sequence[str], word: str) -> str:
    """The parts under one AND or OR, as a balanced tree: SQLite takes expressions up to depth 1,000."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({joined(parts[:middle], word)} {word} {joined(parts[middle:], word)})"


def predicate(field: str, op: str, value: Mapping[str, Any], scope: Scope, bind: Bindings) -> str:
    """One comparison; true, or else false or null."""
    term, wanted = scope(field), plain(value)
    if wanted is None:
        return {"eq": f"{term.sql} IS NULL", "ne": f"{term.sql} IS NOT NULL"}.get(op, "0")
    if term.kind is None:
        return "0"
    if op == "in":
        return _among(term, [x for x in wanted if x is not None], bind)
    if op == "contains":
        return f"instr({textual(term)}, {bind(text_of(wanted))}) > 0"
    if op == "prefix":
        return _prefix(textual(term), wanted, bind)
    return _compared(term, op, wanted, bind)


def textual(term: Term) -> str:
    """The term's values as text."""
    if term.kind == STRING:
        return term.sql
    if term.kind == BOOLEAN:
        return f"CASE {term.sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
    return f"CAST({term.sql} AS TEXT)"


def plain(value: Mapping[str, Any]) -> Any:
    """A typed value as a Python one: None, bool, int, float, str, or a list of them."""
    kind, content = value["kind"], value.get("value")
    try:
        if kind == "null":
            return None
        if kind == "list":
            return [plain(item) for item in content]
        if kind == "decimal":
            digits = Decimal(int.from_bytes(content["unscaled"], "big", signed=True)).scaleb(
                -content["scale"]
            )
            return int(digits) if digits == digits.to_integral_value() else float(digits)
        if kind == "uuid":
            return str(UUID(bytes=bytes(content)))
        wanted = {"boolean": bool, "string": str, "float": (float, int), "double": (float, int)}.get(
            kind, int
        )
    except (TypeError, ValueError, KeyError, ArithmeticError):
        raise invalid(f"a {kind} whose value is none") from None
    if not isinstance(content, wanted) or (wanted is int and isinstance(content, bool)):
        raise invalid(f"a {kind} whose value is none")
    return content.encode("utf-8", "replace").decode() if isinstance(content, str) else content


def _compared(term: Term, op: str, wanted: Any, bind: Bindings) -> str:
    sign = OPERATORS[op]
    ordering = op not in ("eq", "ne")
    if term.kind in (LONG, DOUBLE) and not isinstance(wanted, bool):
        number = number_in(wanted) if isinstance(wanted, str) else wanted
        if number is not None:
            return f"{term.sql} {sign} {bind(_stored(number))}"
    elif term.kind == BOOLEAN and (isinstance(wanted, bool) or wanted in ("true", "false")):
        return f"{term.sql} {sign} {bind(int(wanted in (True, 'true')))}"
    elif term.kind == STRING:
        number = number_in(wanted) if isinstance(wanted, str) and ordering else wanted
        if isinstance(number, int | float) and not isinstance(number, bool):
            return _numeric_text(term.sql, sign, number, text_of(wanted), bind, ordering=ordering)
    return f"{textual(term)} {sign} {bind(text_of(wanted))}"


def _numeric_text(sql: str, sign: str, number: float, text: str, bind: Bindings, *, ordering: bool) -> str:
    """Text cells against a number: as numbers where they read as one, else as text.

    Comparing with a NUMERIC expression makes SQLite read the text; what does not read as a number stays text,
    and text is above every number.
    """
    numeric = f"{sql} {sign} CAST({bind(_stored(number))} AS NUMERIC)"
    if not ordering:
        return numeric
    return f"CASE WHEN {sql} > CAST(9e999 AS NUMERIC) THEN {sql} {sign} {bind(text)} ELSE {numeric} END"


def _among(term: Term, wanted: list[Any], bind: Bindings) -> str:
    parts = [_compared(term, "eq", value, bind) for value in wanted]
    head = f"{term.sql} = "
    plain_ones = [part.removeprefix(head) for part in parts if part.startswith(head + "?")]
    others = [part for part in parts if not part.startswith(head + "?")]
    if plain_ones:
        others.append(f"{term.sql} IN ({', '.join(plain_ones)})")
    return joined(others, "OR") if others else "0"


def _prefix(sql: str, prefix: str, bind: Bindings) -> str:
    if not prefix:
        return f"{sql} IS NOT NULL"
    end = prefix.rstrip("\U0010ffff")
    start = f"{sql} >= {bind(prefix)}"
    if not end:
        return start
    following = ord(end[-1]) + 1
    following = 0xE000 if following == 0xD800 else following
    return f"({start} AND {sql} < {bind(end[:-1] + chr(following))})"


def _stored(number: float) -> float:
    """A number SQLite can bind: a decimal's integer beyond 64 bits (16 bytes at most) becomes a float."""
    return float(number) if isinstance(number, int) and not I64_MIN <= number <= I64_MAX else number
