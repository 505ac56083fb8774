"""The charts of a small day look as they did when somebody looked at them (with pytest --mpl), and say what they show.

To look again: pytest tests/analysis/test_rewind_pictures.py --mpl-generate-path=tests/analysis/baseline
"""

import pytest
from matplotlib.collections import PathCollection

from tests.analysis.tuesday import tuesday

SAME = {
    "baseline_dir": "baseline",
    "savefig_kwargs": {"dpi": 60},
    "tolerance": 1,  # of 255, on average over all points: one cross that is missing is more than that
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


def test_every_kill_and_replay_has_its_mark_and_every_van_its_number():
    """What a comparison of pictures, mostly white, could still overlook."""
    rewind = tuesday()
    kinds = list(rewind.events["kind"])
    gantt, drops, recovery = (
        one.figure.axes[0] for one in (rewind.gantt(), rewind.drops(), rewind.recovery())
    )
    marks = [line.get_marker() for line in gantt.lines]
    assert marks.count("x") == kinds.count("killed") == 1
    assert marks.count("o") == kinds.count("replay") == 1
    assert {text.get_text() for text in gantt.texts} >= {"replay", "approved"}
    assert [text.get_text() for text in drops.texts][:2] == ["11", "9 and 1 failed"]
    assert gantt.get_xlabel() == "real time (the labels are what the demo clock said then)"
    dots = [dot for dot in recovery.collections if isinstance(dot, PathCollection)]
    assert [len(dot.get_offsets()) for dot in dots] == [1, 1]  # one kill: up, and working again
