"""JSON Patch (RFC 6902) on plain JSON values; the shared cases of the wire contract hold it."""

import copy
from typing import Any

MAX_OPERATIONS = 256
MAX_WORK = 1 << 20  # what one patch may copy and compare, in about the bytes of its JSON: 0.1 s
_NODE = 4  # of a value, beside its text
_INDEX_DIGITS = 10


class PatchError(ValueError):
    """A patch that cannot be applied; the text says why."""


def apply_patch(document: Any, patch: Any) -> Any:
    """A copy of the document with every operation applied, or PatchError and nothing changed."""
    if not isinstance(patch, list) or len(patch) > MAX_OPERATIONS:
        raise PatchError(f"a patch is a list of at most {MAX_OPERATIONS} operations")
    document, work = copy.deepcopy(document), _Work()
    for operation in patch:
        try:
            document = _apply(document, operation, work)
        except (KeyError, TypeError, AttributeError):
            raise PatchError("a malformed operation") from None
    return document


class _Work:
    """What one patch has left to copy and compare: a copy into itself doubles a value, every time."""

    def __init__(self) -> None:
        self._left = MAX_WORK

    def copied(self, value: Any) -> Any:
        """A copy that shares no container."""
        self._spend(value)
        if isinstance(value, dict):
            return {self._spend(key): self.copied(item) for key, item in value.items()}
        return [self.copied(item) for item in value] if isinstance(value, list) else value

    def same(self, one: Any, other: Any) -> bool:
        """JSON equality: true is not 1, at any depth."""
        self._spend(one)
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self.same(one[key], other[key]) for key in one)
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self.same, one, other))
        return one == other

    def _spend(self, value: Any) -> Any:
        self._left -= _NODE + (len(value) if isinstance(value, str) else 0)
        if self._left < 0:
            raise PatchError(f"a patch copies and compares at most {MAX_WORK} bytes")
        return value


def _apply(document: Any, operation: dict[str, Any], work: _Work) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "add":
        return _add(document, path, work.copied(operation["value"]))
    if kind == "remove":
        return _remove(document, path)[0]
    if kind == "replace":
        return _replace(document, path, work.copied(operation["value"]))
    if kind == "test":
        if not work.same(_find(document, path), operation["value"]):
            raise PatchError("a test does not hold")
        return document
    source = _pointer(operation["from"])
    if kind == "copy":
        return _add(document, path, work.copied(_find(document, source)))
    if kind == "move":
        if path[: len(source)] == source and len(path) > len(source):
            raise PatchError("a value cannot move into itself")
        document, value = _remove(document, source)
        return _add(document, path, value)
    raise PatchError("an unknown operation")


def _pointer(text: str) -> list[str]:
    """RFC 6901: the parts of a pointer."""
    if text == "":
        return []
    if not text.startswith("/"):
        raise PatchError("a pointer starts with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _index(items: list[Any], part: str, *, adding: bool = False) -> int:
    if adding and part == "-":
        return len(items)
    if not (part.isascii() and part.isdigit()) or (part[0] == "0" and part != "0"):
        raise PatchError(f"{part[:40]!r} is no array index")
    index = int(part) if len(part) <= _INDEX_DIGITS else len(items) + 1
    if index >= len(items) + adding:
        raise PatchError(f"index {part[:_INDEX_DIGITS]} is outside the array")
    return index


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, list):
            document = document[_index(document, part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            raise PatchError(f"nothing at {part[:40]!r}")
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, path[-1], adding=True), value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchError("the parent is no container")
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    _find(document, path)
    if not path:
        return value
    parent = _find(document, path[:-1])
    parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]] = value
    return document


def _remove(document: Any, path: list[str]) -> tuple[Any, Any]:
    if not path:
        raise PatchError("the root cannot be removed")
    value = _find(document, path)
    parent = _find(document, path[:-1])
    del parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]]
    return document, value
