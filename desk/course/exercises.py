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


EXERCISES: Mapping[str, Exercise] = {
    "0.1": Exercise(
        asks="How many records does the old cursor return, and how many would a new one?",
        right=(1, 3),
        why="A cursor knows where it stopped; a new one starts at the beginning, and nothing was taken away.",
        hint="Poll the old cursor: it goes on where it stopped. Then call hello.replay() and poll that one.",
    ),
    "1.1": Exercise(
        asks="Who decides about a refund above the limit?",
        right="manager",
        why="The rule knows its own limit: above it this desk refuses and names who may decide.",
        hint="Look at the text of the policy row: timeline(support, it).",
    ),
    "1.2": Exercise(
        asks="You declined first and approved second: is the refund paid, True or False?",
        right=False,
        why="The first answer is stored, and whoever comes later finds it there; two people cannot both decide.",
        hint="Count: counts(support, it). Which of your two answers is in the timeline?",
    ),
    "2.1": Exercise(
        asks="How many lookups were made for this ticket?",
        right=2,
        why="The first answer was never recorded, so nobody can know it: asking again is the only honest thing.",
        hint="The process died before it had anything to note down. What can the next one find?",
    ),
    "2.2": Exercise(
        asks="How often was the policy step held?",
        right=0,
        why="There is a bookmark, so the next process replays: it looks up again, but whoever replays does not hold.",
        hint="In the upper half of resolve, after the bookmark is found, is there a call of hold?",
    ),
    "3.1": Exercise(
        asks="How many payments too many does the worst row have?",
        right=2,
        why="Without note and key every death costs a payment, wherever it comes.",
        hint="A row has two tickets, so two payments are right. Which row is furthest above two?",
    ),
    "3.2": Exercise(
        asks="How often is the bank asked for this ticket?",
        right=1,
        why="The note says done, so the next process has no reason to go to the bank.",
        hint="Run it with kill='billing' and at='closed', then look at counts(support, it).",
    ),
    "4.1": Exercise(
        asks="However often the ticket is hit, how often is its person asked?",
        right=1,
        why="The question has a key derived from the ticket, so asking again is the same question.",
        hint="counts(support, it) counts questions by their key.",
    ),
}
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
