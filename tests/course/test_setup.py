"""The set-up check names what is too old and what to do about it."""

import pytest

from desk.course.setup import NEEDS, held_clicks, judged, set_up


def test_this_environment_will_do():
    assert list(set_up().table["here"]) == ["fine"] * len(NEEDS)


def test_an_old_kernel_is_named_with_what_to_do():
    here = judged({**{part: "99" for part in NEEDS}, "ipykernel": "6.31.0"}).table["here"]
    assert here["ipykernel"].startswith("6.31.0: older ones hold clicks back")
    assert "make venv" in here["ipykernel"]
    assert here["Python"] == "fine"


def test_a_part_that_is_not_there_is_named():
    here = judged({**{part: "99" for part in NEEDS}, "laser-sdk": ""}).table["here"]
    assert here["laser-sdk"] == "missing: run make venv, then choose its kernel"


def test_an_older_ipykernel_is_named_at_every_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert held_clicks() == ""
    monkeypatch.setattr("desk.course.setup._found", lambda part: "6.29.5")
    assert held_clicks().startswith("ipykernel is 6.29.5: older ones hold clicks back while a cell waits")
