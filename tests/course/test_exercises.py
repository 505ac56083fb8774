"""check says whether the learner saw it, and never gives the answer away."""

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


def test_an_exercise_that_does_not_exist():
    with pytest.raises(CheckError, match=r"no exercise '99.1'"):
        check("99.1", 2)
