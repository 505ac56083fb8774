"""check: did the learner see it? Each exercise has one right answer, the reason, and a hint when it is not it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Exercise:
    """What was asked, what is right, why, and where to look when the answer is another one."""

    asks: str
    right: Any
    why: str
    hint: str


class CheckError(LookupError):
    """There is no such exercise. Its text says which there are."""


@dataclass(frozen=True)
class Verdict:
    """What check says. A notebook shows the sentence."""

    ok: bool
    sentence: str

    def __repr__(self) -> str:
        return self.sentence


EXERCISES: Mapping[str, Exercise] = {}
"""By notebook and number: "2.1" is the first exercise of notebook 02."""


def check(number: str, answer: Any) -> Verdict:
    """Judge an answer. `...` (nothing filled in yet) asks for one. Raises CheckError for an unknown number."""
    exercise = EXERCISES.get(number)
    if exercise is None:
        raise CheckError(f"There is no exercise {number!r}: choose from {', '.join(EXERCISES)}.")
    if answer is ...:
        return Verdict(False, f"{number}  {exercise.asks} Put your answer in place of the dots, run again.")
    if _same(answer, exercise.right):
        return Verdict(True, f"{number}  Right. {exercise.why}")
    return Verdict(False, f"{number}  Not {answer!r}. {exercise.hint}")


def _same(answer: Any, right: Any) -> bool:
    if isinstance(answer, str) and isinstance(right, str):
        return answer.strip().lower() == right.lower()
    return bool(answer == right)
