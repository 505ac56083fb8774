"""The sentences a judge can say, as its source has them, so that a test can ask for each to be heard."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path


def unheard(judge: str, heard: Iterable[str]) -> list[str]:
    """Which sentences of the judge in this file nobody heard. A sentence is what a function yields."""
    said = list(heard)
    tree = ast.parse(Path(judge).read_text(encoding="utf-8"))
    sentences = [node.value for node in ast.walk(tree) if isinstance(node, ast.Yield)]
    assert len(sentences) > 10 and all(isinstance(s, ast.Constant | ast.JoinedStr) for s in sentences)
    return [ast.unparse(s) for s in sentences if not any(_pattern(s).fullmatch(text) for text in said)]


def _pattern(sentence: ast.expr) -> re.Pattern[str]:
    """What the sentence looks like, whatever is filled in."""
    parts = sentence.values if isinstance(sentence, ast.JoinedStr) else [sentence]
    return re.compile(
        "".join(re.escape(p.value) if isinstance(p, ast.Constant) else ".*" for p in parts), re.DOTALL
    )
