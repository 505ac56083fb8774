"""JSON Schema with a bound on its work: jsonschema's keywords, counted, with RE2's patterns.

A schema of a few lines can ask for work that never ends: references that double at every level, patterns that
try every way to match, items compared with all others. So every subschema that is applied costs a step, long
keywords and values cost more, patterns match in linear time (RE2: no look-around, no back-references), and
whoever runs out of steps has failed.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from types import ModuleType
from typing import Any

MAX_STEPS = 50_000  # about half a second
_PATTERN_BYTES = 1 << 18  # of memory for one pattern
_LOOP = 8  # turns of a keyword's own loop that take as long as a step
_MATCH = 4_000  # characters times instructions that a pattern does in one
_LONGEST_QUOTE = 60
_SHOWN = 1_024  # characters of a value that a message quotes in one


class TooMuch(Exception):
    """The schema is not done with the value after the steps there are."""


class Invalid(ValueError):
    """The schema is none, or one that is not served; the text says why."""


class _Work:
    """What is left of one check's steps; errors quote the whole value, which has a weight."""

    def __init__(self, value: Any) -> None:
        self._left = MAX_STEPS
        self.weight = 0
        waiting = [value]
        while waiting:
            item = waiting.pop()
            self.weight += 8 + (len(item) if isinstance(item, str) else 0)
            if isinstance(item, dict):
                waiting.extend(item)
                waiting.extend(item.values())
            elif isinstance(item, list):
                waiting.extend(item)

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuch


_WORK: ContextVar[_Work] = ContextVar("the check that is running")


class Validator:
    """A JSON schema; it checks values."""

    def __init__(self, schema: Any) -> None:
        """Raises Invalid, or TooMuch when the schema is too large to be checked itself."""
        jsonschema = _jsonschema()
        if not isinstance(schema, dict | bool):
            raise Invalid("a schema is an object or a boolean")
        draft = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        kind = _bounded(draft)
        meta = kind(draft.META_SCHEMA, registry=_offline(), format_checker=_regex_only(jsonschema))
        problem = _first_problem(meta, schema)
        if problem is not None:
            patterns = "; patterns are RE2's" if problem.validator == "format" else ""
            raise Invalid(problem.message[:160] + patterns)
        if {"unevaluatedProperties", "patternProperties"} <= _keys(schema):
            raise Invalid("unevaluatedProperties and patternProperties are not served together")
        self._validator = kind(schema, registry=_offline())

    def problem(self, value: Any) -> str | None:
        """What the schema finds wrong with a value, None when nothing; TooMuch when it takes too long."""
        problem = _first_problem(self._validator, value)
        if problem is None:
            return None
        place = "".join(f"/{part}" for part in problem.absolute_path) or "the record"
        return f"{place}: {problem.message[:200]}"


def _first_problem(validator: Any, value: Any) -> Any:
    before = _WORK.set(_Work(value))
    try:
        return next(validator.iter_errors(value), None)
    finally:
        _WORK.reset(before)


@lru_cache
def _bounded(draft: Any) -> Any:
    """A draft's validator, counted. Subschemas stay in it, whatever `$schema` they name."""
    import attrs
    from jsonschema.validators import extend

    ours = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    counted = {name: _counted(name, ours.get(name, function)) for name, function in draft.VALIDATORS.items()}

    def evolve(self: Any, **changes: Any) -> Any:
        _WORK.get().spend(1)
        return attrs.evolve(self, **changes)

    kind = extend(draft, counted)
    kind.evolve = evolve
    return kind


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def keyword(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        work = _WORK.get()
        work.spend((_length(wanted) + _length(instance)) // _LOOP)
        if name == "enum" and isinstance(instance, dict | list):
            work.spend(len(wanted) * (1 + work.weight // _LOOP**2))
        for error in function(validator, wanted, instance, schema) or ():
            work.spend(1 + work.weight // _SHOWN)
            yield error

    return keyword


def _length(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


@lru_cache(256)
def _compiled(pattern: str) -> Any:
    import re2

    _WORK.get().spend(20 + len(pattern) // _LOOP)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    return re2.compile(pattern, options=options)


def _matches(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    _WORK.get().spend(1 + len(text) * compiled.programsize // _MATCH)
    return compiled.search(text) is not None


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        shown = instance if len(instance) <= _LONGEST_QUOTE else instance[: _LONGEST_QUOTE - 3] + "..."
        yield _error(f"{shown!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if _matches(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in named or any(_matches(pattern, name) for pattern in patterns):
            continue
        if wanted is False:
            yield _error(f"Additional properties are not allowed ({name!r} was unexpected)")
        else:
            yield from validator.descend(value, wanted, path=name)


def _unique_items(validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if wanted and validator.is_type(instance, "array"):
        _WORK.get().spend(_WORK.get().weight // _LOOP**2)
        written = {json.dumps(_whole(item), sort_keys=True) for item in instance}
        if len(written) < len(instance):
            yield _error("the items are not unique")


def _whole(value: Any) -> Any:
    """The value with 1.0 as 1: numbers are equal by what they are worth."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _error(text: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(text)


def _keys(schema: Any) -> set[str]:
    """Every name used anywhere in a schema."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found.update(node)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return found


@lru_cache
def _regex_only(jsonschema: ModuleType) -> Any:
    """Of the formats a metaschema names, the one of patterns."""
    import re2

    checker = jsonschema.FormatChecker(formats=())

    @checker.checks("regex", raises=re2.error)
    def is_pattern(value: Any) -> bool:
        return not isinstance(value, str) or _compiled(value) is not None

    return checker


def _offline() -> Any:
    """A registry that fetches nothing: a $ref to another document is an error, never a request."""
    from referencing import Registry

    return Registry()


def _jsonschema() -> ModuleType:
    """The library, without a grammar of international addresses that takes it a second to build.

    Everybody would wait for it, and only checks of formats use it, which are none of ours.
    """
    grammar = "rfc3987_syntax"
    if "jsonschema" in sys.modules or grammar in sys.modules:
        return importlib.import_module("jsonschema")
    sys.modules[grammar] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("jsonschema")
    finally:
        del sys.modules[grammar]
