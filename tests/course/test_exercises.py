"""check says whether the learner saw it, and never gives the answer away."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from desk.course.exercises import EXERCISES, CheckError, check


@pytest.mark.parametrize("number", EXERCISES)
def test_the_right_answer_is_right_and_told_why(number):
    verdict = check(number, EXERCISES[number].right)
    assert verdict.ok
    assert EXERCISES[number].why in repr(verdict)


@pytest.mark.parametrize("number", EXERCISES)
def test_dots_ask_for_an_answer_and_a_wrong_one_gets_the_hint_only(number):
    exercise = EXERCISES[number]
    for answer in (..., "something else"):
        verdict = check(number, answer)
        assert not verdict.ok
        assert exercise.why not in repr(verdict)
    assert exercise.hint in repr(check(number, "something else"))


@pytest.mark.parametrize("number", EXERCISES)
def test_a_hint_gives_nothing_away(number):
    right = EXERCISES[number].right
    values = [right] if isinstance(right, str | int | float) else [v for part in right for v in flat(part)]
    given = set(re.findall(r"[\w.-]+\w|\w", EXERCISES[number].hint.lower()))
    assert not given & {str(value).lower() for value in values}


SAME = {
    "0.1": ([1, 3], np.array([1, 3]), pd.Series([1, 3]), ("1", 3.0)),
    "0.2": (" Blue ", "'blue'"),
    "1.1": ("a manager", "Manager.", "The manager"),
    "1.2": ("False", "no", np.False_),
    "2.1": ("2", "2.", 2.0, np.int64(2)),
    "7.1": ([2, 1],),
    "9.1": ("True", "yes"),
    "11.1": (6.9000001, Decimal("6.90"), "$6.90", "6.9"),
    "13.1": ("parcels_once()",),
    "14.2": (((2, 1), (2, 1), (2, 2), (2, 2)), [[2, 1], [2, 1], [2, 2], [2, 2]]),
}
OTHER = {
    "0.1": ((1,), (1, 3, 3), {1: 3}, "13", 1, pd.DataFrame({1: [1], 3: [3]}).T, iter([1, 3]), {1, 3}),
    "0.2": (0, None, "the", b"blue"),
    "1.2": (0, None, "", "perhaps", np.True_),
    "3.2": (True, None, "", "one or two", 1 + 0j, float("nan"), [1]),
    "11.1": (6.95, 6, Decimal("6.09"), "$69.0", "-", "-6.9", -6.9, 10**400),
    "12.2": ((1, 0), (True, True), [True]),
}


@pytest.mark.parametrize(("number", "answers"), SAME.items())
def test_a_right_answer_is_right_in_whatever_form(number: str, answers: Sequence[Any]) -> None:
    for answer in answers:
        assert check(number, answer).ok, answer


@pytest.mark.parametrize(("number", "answers"), OTHER.items())
def test_what_is_only_of_the_same_form_is_not_right(number: str, answers: Sequence[Any]) -> None:
    for answer in answers:
        assert not check(number, answer).ok, answer


def flat(part):
    return part if isinstance(part, tuple) else (part,)


def test_an_exercise_that_does_not_exist():
    with pytest.raises(CheckError, match=r"no exercise '99.1'"):
        check("99.1", 2)
