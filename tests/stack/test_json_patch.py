"""JSON Patch against the cases every implementation of the wire contract shares."""

import json

import pytest

from desk.stack.folds.json_patch import PatchError, apply_patch
from tests.stack.sdist import sdist


def test_the_shared_cases():
    cases = json.loads((sdist() / "wire" / "fixtures" / "json_patch" / "cases.json").read_text())
    assert len(cases) > 10
    for case in cases:
        if "result" in case:
            assert apply_patch(case["document"], case["patch"]) == case["result"], case["name"]
        else:
            with pytest.raises(PatchError):
                apply_patch(case["document"], case["patch"])


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add", "path": "/a/b", "value": 1}],
        [{"op": "remove", "path": ""}],
        [{"op": "move", "from": "/o", "path": "/o/p"}],
        [{"op": "test", "path": "/n", "value": True}],
        [{"op": "add", "path": "/l/01", "value": 1}],
        [{"op": "add", "path": "/l/3", "value": 1}],
        [{"op": "replace", "path": "/none", "value": 1}],
        [{"op": "what", "path": ""}],
        [{"op": "add"}],
        ["add"],
        [{"op": "add", "path": "/a", "value": 1}] * 257,
        {"op": "add"},
    ],
)
def test_a_patch_that_cannot_apply_changes_nothing(patch):
    document = {"o": {}, "n": 1, "l": [1, 2]}
    with pytest.raises(PatchError):
        apply_patch(document, patch)
    assert document == {"o": {}, "n": 1, "l": [1, 2]}


def test_a_failing_operation_undoes_the_ones_before():
    document = {"a": {"b": 1}}
    with pytest.raises(PatchError):
        apply_patch(document, [{"op": "add", "path": "/a/c", "value": 2}, {"op": "remove", "path": "/x"}])
    assert document == {"a": {"b": 1}}


def copies(count: int) -> list[dict]:
    return [{"op": "copy", "from": "/a", "path": "/a/-"}] * count


@pytest.mark.parametrize(
    "patch",
    [
        copies(24),
        [{"op": "copy", "from": "", "path": f"/a{'/0' * level}"} for level in range(100)],
        [{"op": "copy", "from": "/text", "path": "/a/-"}] * 255,
        [{"op": "test", "path": "/text", "value": "x" * 100_000}] * 255,
        [{"op": "test", "path": "/list", "value": [0] * 100_000}] * 255,
        [{"op": "add", "path": f"/a/{'9' * 5_000}", "value": 0}],
    ],
)
def test_a_patch_does_a_bounded_amount_of_work(patch):
    with pytest.raises(PatchError):
        apply_patch({"a": [0], "text": "x" * 100_000, "list": [0] * 100_000}, patch)


def test_a_value_may_be_copied_into_itself():
    assert len(str(apply_patch({"a": [0]}, copies(10)))) > 1 << 10
