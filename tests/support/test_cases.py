"""A ticket closes once, by whoever ends its last issue."""

from itertools import permutations

from desk.support.cases import ended, opened


def test_the_last_issue_closes_whatever_the_order() -> None:
    for order in permutations(["a", "b", "c"]):
        case = opened("abc")
        for handoff in order:
            assert case["closed_by"] is None
            case = ended(case, handoff, "refunded")
        assert case["closed_by"] == order[-1]


def test_ending_again_changes_nothing() -> None:
    case = ended(opened("ab"), "a", "refunded")
    assert ended(case, "a", "declined") is None
    closed = ended(case, "b", "answered")
    assert closed["issues"] == {"a": "refunded", "b": "answered"} and ended(closed, "b", "answered") is None
