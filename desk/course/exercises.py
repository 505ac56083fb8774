"""check: did the learner see it? Each exercise has one right answer, the reason, and a hint when it is not it."""

import math
import re
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from numbers import Number
from string import punctuation, whitespace
from typing import Any

import numpy as np

from desk.control.arguments import shown
from desk.control.errors import DeskError, awaited


@dataclass(frozen=True)
class Exercise:
    """What was asked, what is right, why, and where to look when the answer is another one."""

    asks: str
    right: Any
    why: str
    hint: str


class CheckError(DeskError):
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
    "0.2": Exercise(
        asks="What is under the key colour now?",
        right="blue",
        why="The second writer was told that somebody had been there, and changed nothing.",
        hint="Look with kept(support, 'notes'). Was the second one written?",
    ),
    "1.1": Exercise(
        asks="Who decides about a refund above the limit?",
        right="manager",
        why="The rule knows its own limit: above it this desk refuses and names who may decide.",
        hint="timeline(support, ticket), with your ticket in it. Read the reply to its end: whom does it name?",
    ),
    "1.2": Exercise(
        asks="You declined first and approved second: is the refund paid, True or False?",
        right=False,
        why="The first answer is stored, and whoever comes later finds it there; two people cannot both decide.",
        hint="Count: counts(support, it), where it is the new ticket. Which of your two answers is in its timeline?",
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
        hint="Which half of resolve does the process go through that finds a bookmark? Follow it line by line.",
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
        hint="Look at counts(support, it) of the ticket you have just run, not of one above.",
    ),
    "3.3": Exercise(
        asks="How often is the bank asked, by both processes together?",
        right=1,
        why="Both had the note: one had written it, the other found it.",
        hint="Look at counts(support, it). What does the second process find, and what has the first still to do?",
    ),
    "4.1": Exercise(
        asks="However often the ticket is hit, how often is its person asked?",
        right=1,
        why="The question has a key derived from the ticket, so asking again is the same question.",
        hint="counts(support, it) counts questions by their key.",
    ),
    "4.2": Exercise(
        asks="How many payments are there for the five, and how many customers have their reply?",
        right=(0, 5),
        why="A no is kept like a yes, and telling the customer is work like any other: done once.",
        hint="Add up paid and replied of counts(support, five). Whom does a person's no concern?",
    ),
    "5.1": Exercise(
        asks="How many rows does the query for failed drops return on this day?",
        right=0,
        why="Nobody was out, so there is no failed drop, and a group without rows is no row with a zero in it.",
        hint="Ask it: the same query as for the drops, with failed in place of delivered.",
    ),
    "5.2": Exercise(
        asks="How many rows does the query per stop return, and what is the largest count among them?",
        right=(36, 1),
        why="One row for each parcel, and each was delivered once.",
        hint="It is the query for the drops, grouped by another field. Look at the column count.",
    ),
    "6.1": Exercise(
        asks="How many entries does the journal have in the end?",
        right=3,
        why="One for each step that was completed, whoever was dispatch at the time.",
        hint="Run it, wait until it is closed, then journal(fleet, again).",
    ),
    "6.2": Exercise(
        asks="How many events of the kind exception are there about it?",
        right=1,
        why="The key was written only if it was absent; the second dispatch found it and opened nothing.",
        hint="Count them as above, with again in place of closure.",
    ),
    "7.1": Exercise(
        asks="How often was the step replan begun, and how often was a plan worked out?",
        right=(2, 1),
        why="The second process began the step too, but it found the plan of the first and did not decide again.",
        hint="Look at the events of the exception you made: timeline(fleet, again).",
    ),
    "7.2": Exercise(
        asks="By how many drops does the round grow?",
        right=0,
        why="The round remembers whose change is in it, so the same change again is no change.",
        hint="Count with len(await drops(fleet, 'van-2')), before and after.",
    ),
    "8.1": Exercise(
        asks="How many of the four steps did routing-1 get?",
        right=0,
        why="A closure has two steps of routing; all four went to the only copy that was in service.",
        hint="Look at the last rows of shares(fleet.events()).",
    ),
    "8.2": Exercise(
        asks="Which agent can never be put into quarantine here: customer, invoice or both?",
        right="both",
        why="Each is the only one that serves its skill, and steps of that skill would have nobody.",
        hint="Look at fleet.skills(): which skills have one agent only?",
    ),
    "9.1": Exercise(
        asks="Is the parked message still there after the kill?",
        right=True,
        why="It is parked in key-value state, outside the process that parked it.",
        hint="Look at capsules(fleet) after the kill.",
    ),
    "9.2": Exercise(
        asks="How often was each customer of van-1 told?",
        right=1,
        why="Nothing had gone out before the letter was parked, and after the redrive everything went out once.",
        hint="Look at told(fleet, …) of the closure you made, once it is closed.",
    ),
    "10.1": Exercise(
        asks="Close the road for van-2 once more. Which time does the message say it is?",
        right="third",
        why="Two days and a new incident are three records; the same incident again would have been one.",
        hint="Read the last sentence of a message: told(fleet, …) of the closure you made, once it is closed.",
    ),
    "10.2": Exercise(
        asks="How many items does each of the two recalls have, with dedup and without?",
        right=(1, 2),
        why="With dedup the same customer, agent and text make the same record; without it each remembering is one more.",
        hint="Remember twice for each of the two, each time the same text, then count what recall returns.",
    ),
    "11.1": Exercise(
        asks="How many dollars of the bill are still unexplained on a fork with the two drops alone?",
        right=6.9,
        why="Six kilometres at $1.15: the drops and the kilometres were two mistakes, and neither hid the other.",
        hint="Look at the last row of bill_beside(fleet, fork='mine'). Are both rows on your fork?",
    ),
    "11.2": Exercise(
        asks="How many deliveries at those stops do the real views count, with the fork open and with it squashed?",
        right=(0, 0),
        why="A fork's rows live in the fork, and go with it.",
        hint="Ask for the deliveries per stop as above, once without .fork(...) in the query.",
    ),
    "12.1": Exercise(
        asks="How many rows would day.frames have if the vans reported ten times as often?",
        right=352,
        why="One for each minute and van: an earlier report of the same minute is forgotten.",
        hint="What does Fold.positions do with a second report of a van in one minute?",
    ),
    "12.2": Exercise(
        asks="After killing dispatch and rewinding again: are the frames the same, and are the events?",
        right=(True, False),
        why="Nothing that rewind reads was in the process; but its death is on the log, like everything that happens.",
        hint="Compare with later.frames.equals(day.frames), and the same for events.",
    ),
    "13.1": Exercise(
        asks="Which check would notice a parcel that went back to the depot and was delivered, too?",
        right="parcels_once",
        why="It counts both ways in which a parcel can end, repeats included, and asks for exactly one for each.",
        hint="Read what each of them compares. Which says something about one parcel, and not about totals?",
    ),
    "13.2": Exercise(
        asks="How many claims fail when the message is on the log twice, and how many when it is there under another id, too?",
        right=(0, 1),
        why="A repeat under the same id is dropped by whoever reads; under another id it is a second message.",
        hint="Ask for await checks(fleet) after each of the two records, and count the rows that say FAILS.",
    ),
    "14.1": Exercise(
        asks="Killed in the hold, how often does your resolver look up, and how often does it hold?",
        right=(2, 2),
        why="Without a bookmark the next process cannot know that there was one before it, so it does everything again.",
        hint="A resolver that starts over does both again. What does yours still find when it starts?",
    ),
    "14.2": Exercise(
        asks="How often is the bank asked, and how often does it pay, in each of the four tickets?",
        right=[(2, 1), (2, 1), (2, 2), (2, 2)],
        why="Without a note each death is a second trip to the bank; whether that costs money is up to the bank.",
        hint="In the ticket killed late, something still keeps billing from going to the bank again. What is it?",
    ),
    "14.3": Exercise(
        asks="Does your agent pass?",
        right=True,
        why="Wherever it is killed, the log tells the next process what is done, and the bank what is paid.",
        hint="Find the first row with a fault. What is on the log by then, and does the next process look there?",
    ),
    "15.1": Exercise(
        asks="For which ticket was the same lookup paid twice?",
        right="t-8",
        why="A lookup that was killed before its answer was recorded is made again, and both are on the bill.",
        hint="counts(support, tickets) shows who has more than one lookup. Were both of them about the same order?",
    ),
    "15.2": Exercise(
        asks="Does your version need fewer than ten lookups, and does no check say NO?",
        right=(True, True),
        why="It saves the lookup that could not have found anything, and no customer is told less than before.",
        hint="evals shows which ticket got worse, or counts which lookups are left. What does body hold about the order?",
    ),
}
"""By notebook and number: "2.1" is the first exercise of notebook 02."""

_AROUND = punctuation + whitespace
_AROUND_MONEY = "$'\"" + whitespace


def check(number: str, answer: Any) -> Verdict:
    """Judge an answer. `...` (nothing filled in yet) asks for one. Raises CheckError for an unknown number."""
    if not isinstance(number, str) or number not in EXERCISES:
        raise CheckError(f"There is no exercise {number!r}: choose from {', '.join(EXERCISES)}.")
    exercise = EXERCISES[number]
    if awaited(answer) is ...:
        return Verdict(False, f"{number}  {exercise.asks} Put your answer in place of the dots, run again.")
    if _same(answer, exercise.right):
        return Verdict(True, f"{number}  Right. {exercise.why}")
    return Verdict(False, f"{number}  Not {shown(answer)}. {exercise.hint}")


def _same(answer: Any, right: Any) -> bool:
    """Whether an answer says the same, in whatever form: a list for a tuple, "$6.90" for 6.9, "a manager." for manager."""
    if isinstance(right, tuple | list):
        if isinstance(answer, str | bytes | Mapping | Set) or not isinstance(answer, Collection):
            return False
        return len(answer) == len(right) and all(map(_same, answer, right))
    if isinstance(right, str):
        return isinstance(answer, str) and _plain(answer) == _plain(right)
    if isinstance(right, bool):
        return _yes_or_no(answer) is right
    return math.isclose(_number(answer), right, rel_tol=1e-6)


def _plain(text: str) -> str:
    """Without what a sentence has around a word: case, punctuation at the ends, a leading article."""
    return re.sub(r"^(a|an|the)\s+", "", text.strip(_AROUND).lower())


def _yes_or_no(answer: Any) -> bool | None:
    if isinstance(answer, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(_plain(answer))
    return bool(answer) if isinstance(answer, bool | np.bool_) else None


def _number(answer: Any) -> float:
    """The number an answer is, or NaN, which is close to none."""
    if isinstance(answer, bool) or not isinstance(answer, str | Number):
        return math.nan
    try:
        return float(answer.strip(_AROUND_MONEY).rstrip(".") if isinstance(answer, str) else answer)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # a complex number, text that is none, one past floats
        return math.nan
