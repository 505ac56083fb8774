"""A table of evidence as a notebook shows it: whole, the same text in every run, words left and numbers right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from numbers import Number
from typing import Any

import pandas as pd

NOTHING = "nothing yet"

Shown = Callable[[Any], str]
"""A cell's value as HTML."""

_CSS = (
    "<style>.desk-sheet td.word, .desk-sheet th.word { text-align: left !important; white-space: normal; }"
    ".desk-sheet td.number, .desk-sheet th.number { text-align: right; font-variant-numeric: tabular-nums; }"
    ".desk-sheet tr.line td { border-top: 2px solid var(--jp-ui-font-color1, #000); font-style: italic; }"
    "</style>"
)


def html(table: pd.DataFrame, shown: Mapping[str, Shown] | None = None, line: int | None = None) -> str:
    """The table as HTML. `shown` says how to draw a column's cells; row number `line` is ruled off as a remark.

    Jupyter would typeset `$49 … $98` as a formula; the classes on the table keep it from doing so.
    """
    draw = dict(shown or {})
    kinds = {c: "number" if pd.api.types.is_numeric_dtype(table[c]) else "word" for c in table.columns}
    head = "".join(f'<th class="{kinds[c]}">{escape(str(c))}</th>' for c in table.columns)
    corner = escape(str(table.index.name or ""))
    rows = []
    for number, (label, row) in enumerate(table.iterrows()):
        cells = "".join(
            f'<td class="{_kind(row[c], kinds[c])}">{draw.get(str(c), _text)(row[c])}</td>'
            for c in table.columns
        )
        ruled = ' class="line"' if number == line else ""
        rows.append(f'<tr{ruled}><th class="word">{escape(str(label))}</th>{cells}</tr>')
    return (
        f'{_CSS}<table class="desk-sheet dataframe mathjax_ignore tex2jax_ignore"><thead><tr><th class="word">{corner}</th>{head}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _kind(value: Any, column: str) -> str:
    return "number" if column == "number" or isinstance(value, Number) else "word"


def _text(value: Any) -> str:
    return escape(str(value))


@dataclass(frozen=True)
class Sheet:
    """A DataFrame (`.table`) shown whole, without elisions."""

    table: pd.DataFrame
    shown: Mapping[str, Shown] = field(default_factory=dict)
    line: int | None = None
    """Number of the row that is a remark between the others, if there is one."""

    def __add__(self, other: "Sheet") -> "Sheet":
        """The rows of both, the other's below."""
        return Sheet(pd.concat([self.table, other.table]), {**other.shown, **self.shown})

    def __repr__(self) -> str:
        return self.table.to_string(max_colwidth=90) if len(self.table) else NOTHING

    def _repr_html_(self) -> str:
        return html(self.table, self.shown, self.line) if len(self.table) else NOTHING
