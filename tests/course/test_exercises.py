"""check says whether the learner saw it, and never gives the answer away."""

import re

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


def flat(part):
    return part if isinstance(part, tuple) else (part,)


def test_an_exercise_that_does_not_exist():
    with pytest.raises(CheckError, match=r"no exercise '99.1'"):
        check("99.1", 2)
