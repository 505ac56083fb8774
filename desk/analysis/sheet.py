"""A table of evidence as a notebook shows it: plain text that two runs share, HTML in which $ is money, not maths."""

from dataclasses import dataclass

import pandas as pd


def html(table: pd.DataFrame) -> str:
    """The table as HTML. Jupyter would typeset `$49 … $98` as a formula; these amounts are left alone."""
    with pd.option_context("display.html.use_mathjax", False):
        return table.to_html(border=0, notebook=True)


@dataclass(frozen=True)
class Sheet:
    """A DataFrame (`.table`) shown whole, without elisions."""

    table: pd.DataFrame

    def __repr__(self) -> str:
        return self.table.to_string(max_colwidth=90)

    def _repr_html_(self) -> str:
        return html(self.table)
