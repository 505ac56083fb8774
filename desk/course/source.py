"""show: the source that runs, read from its file and highlighted in the theme's own colours."""

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from desk.control.errors import DeskError

_COLOURS = {
    "k": ("keyword", "#008000"),
    "ow": ("keyword", "#008000"),
    "s": ("string", "#ba2121"),
    "c": ("comment", "#408080"),
    "m": ("number", "#080"),
    "o": ("operator", "#a2f"),
    "nf": ("def", "#00f"),
}
_CSS = "<style>.desk-source pre { line-height: 1.35; white-space: pre-wrap; margin: 0; }" + "".join(
    f".desk-source [class^={name}] {{ color: var(--jp-mirror-editor-{role}-color, {fallback}); }}"
    if len(name) == 1
    else f".desk-source .{name} {{ color: var(--jp-mirror-editor-{role}-color, {fallback}); }}"
    for name, (role, fallback) in _COLOURS.items()
)
_CSS += (
    ".desk-source .where { color: var(--jp-ui-font-color2, #616161); font-size: 12px; margin-bottom: 6px; }"
    "</style>"
)


class ShowError(DeskError):
    """There is nothing to show under that name. Its text says what there is."""


@dataclass(frozen=True)
class Source:
    """A piece of the repository's own code: where it is, and its lines."""

    where: str
    text: str

    def __repr__(self) -> str:
        return f"# {self.where}\n{self.text}"

    def _repr_html_(self) -> str:
        code = highlight(self.text, PythonLexer(), HtmlFormatter(nowrap=True))
        return (
            f'{_CSS}<div class="desk-source mathjax_ignore tex2jax_ignore"><div class="where">{self.where}</div>'
            f"<pre>{code}</pre></div>"
        )


def show(module: str, name: str = "") -> Source:
    """The source of `name` (a function, a class, `Class.method`) in a module of desk, or of the whole module.

    The module is named without `desk.`, as in `show("support.resolver", "resolve")`. The file is read, not
    imported. Raises ShowError.
    """
    path = _file_of(module)
    text = path.read_text()
    where = "desk/" + module.replace(".", "/") + ".py"
    if name == "":
        return Source(where, text.rstrip())
    scope: ast.AST = ast.parse(text)
    for part in str(name).split("."):
        there = {n.name: n for n in getattr(scope, "body", []) if hasattr(n, "name")}
        if part not in there:
            raise ShowError(f"{where} has no {name!r}: it has {', '.join(there) or 'nothing to show'}.")
        scope = there[part]
    first = min([scope.lineno, *(d.lineno for d in scope.decorator_list)])  # type: ignore[attr-defined]
    lines = text.splitlines()[first - 1 : scope.end_lineno]  # type: ignore[attr-defined]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return Source(where, "\n".join(line[indent:] for line in lines))


def _file_of(module: str) -> Path:
    try:
        spec = importlib.util.find_spec(f"desk.{module}")
    except (ModuleNotFoundError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise ShowError(f"There is no module desk.{module}: name it as in show('support.resolver').")
    return Path(spec.origin)
