"""The charts of a small day look as they did when somebody looked at them (with pytest --mpl), and say what they show.

To look again: pytest tests/analysis/test_rewind_pictures.py --mpl-generate-path=tests/analysis/baseline
"""

import pytest

from tests.analysis.tuesday import tuesday

SAME = {
    "baseline_dir": "baseline",
    "savefig_kwargs": {"dpi": 60},
    "tolerance": 6,  # of 255, on average over all points: letters may sit a pixel elsewhere
    "deterministic": True,
    "style": "default",
}


@pytest.mark.mpl_image_compare(filename="gantt.png", **SAME)
def test_gantt():
    return tuesday().gantt().figure


@pytest.mark.mpl_image_compare(filename="drops.png", **SAME)
def test_drops():
    return tuesday().drops().figure


@pytest.mark.mpl_image_compare(filename="map.png", **SAME)
def test_map_at_a_quarter_past():
    return tuesday().map(15).figure


@pytest.mark.mpl_image_compare(filename="recovery.png", **SAME)
def test_recovery():
    return tuesday().recovery().figure


def test_captions_say_what_to_see():
    rewind = tuesday()
    assert repr(rewind.gantt()).startswith("A cross is a death. A ring is a saved plan")
    assert repr(rewind.drops()) == "22 drops made, 1 failed (hatched)."
    assert repr(rewind.map(15)).startswith("09:15: ")
    assert "taking up the work again" in repr(rewind.recovery())
