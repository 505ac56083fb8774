"""From a record to the fields of a row: a projection's pointers, index headers, the conversation, the vector."""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from desk.stack.folds.decoding import header_number, header_text
from desk.stack.query.kinds import HINTS, narrowed
from desk.stack.wire.iggy import Record
from desk.stack.wire.query import is_vector, valid_name

INDEX = "agdx.idx."
CONVERSATION, CONVERSATION_FIELD = "gen_ai.conversation.id", "conversation_id"
INLINE = "agdx.inline"
MAX_INDEX_HEADERS = 32
MAX_INLINE_BYTES = 8 << 20
_POSITION = re.compile("0|[1-9][0-9]{0,17}")  # of an array, as RFC 6901 writes it

Path = tuple[str, ...]


@dataclass
class Extraction:
    """A projection made ready: `fields` are (name, path, kind hint); `values(document)` lists their values."""

    id: str
    content_type: str
    fields: Sequence[tuple[str, Path, str | None]]
    vector: Path
    inline: bool
    values: Callable[[Any], list[Any]] = field(init=False)
    keys: Sequence[str] | None = field(
        init=False, default=None
    )  # when every field is at the top of the document

    def __post_init__(self) -> None:
        paths = [path for _, path, _ in self.fields]
        if all(len(path) == 1 for path in (*paths, self.vector)):
            self.keys = [path[0] for path in paths]
        self.values = lambda document: [resolved(document, path) for path in paths]


def extraction(projection: Mapping[str, Any]) -> Extraction:
    """An extraction from a registered projection; fields whose names no reply could carry are left out."""
    rules = projection["extraction"]
    fields = [
        (rule["name"], path_of(rule["pointer"]), HINTS.get(rule.get("field_type") or ""))
        for rule in rules.get("fields") or ()
        if valid_name(rule["name"])
    ]
    return Extraction(
        projection["id"],
        projection.get("content_type", "any"),
        list({name: (name, path, hint) for name, path, hint in fields}.values()),
        path_of(rules.get("vector_field") or "/embedding"),
        bool(projection.get("inline_payload_default") or rules.get("inline_payload")),
    )


def path_of(pointer: str) -> Path:
    """The steps of an RFC 6901 pointer."""
    if not pointer:
        return ()
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.removeprefix("/").split("/"))


def resolved(document: Any, path: Path) -> Any:
    """What a path leads to, None when it leads nowhere."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and _POSITION.fullmatch(step) and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document


def header_fields(record: Record) -> dict[str, Any]:
    """Fields from `agdx.idx.*` headers: text narrowed when it is canonical, typed headers as they are."""
    out: dict[str, Any] = {}
    for name, (kind, raw) in record.headers.items():
        if name.startswith(INDEX) and valid_name(name[len(INDEX) :]) and len(out) < MAX_INDEX_HEADERS:
            value = _header_value(record, name, kind, raw)
            if value is not None:
                out[name[len(INDEX) :]] = value
    return out


def _header_value(record: Record, name: str, kind: str, raw: bytes) -> Any:
    if kind == "string":
        return narrowed(raw.decode("utf-8", "replace"))
    if kind in ("f32", "f64"):
        form = "<f" if kind == "f32" else "<d"
        return struct.unpack(form, raw)[0] if len(raw) == struct.calcsize(form) else None
    number = header_number(record, name)
    return bool(number) if kind == "bool" else number


def conversation(record: Record) -> str | None:
    return header_text(record, CONVERSATION)


def wants_payload(record: Record, rules: Extraction) -> bool:
    """Should the row keep the body? The record's own header decides before the projection."""
    asked = header_number(record, INLINE) if INLINE in record.headers else None
    inline = rules.inline if asked is None else bool(asked)
    return inline and len(record.payload) <= MAX_INLINE_BYTES


def vector_of(document: Any, path: Path) -> list[float] | None:
    """The embedding in a document, None when there is none."""
    if not isinstance(document, dict):
        return None
    found = document.get(path[0]) if len(path) == 1 else resolved(document, path)
    if not isinstance(found, list) or not found:
        return None
    return found if is_vector(found) else None
