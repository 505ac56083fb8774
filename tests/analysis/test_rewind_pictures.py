"""The charts of a small day look as they did when somebody looked at them (with pytest --mpl), and say what they show.

To look again: pytest tests/analysis/test_rewind_pictures.py --mpl-generate-path=tests/analysis/baseline
"""

from itertools import combinations
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection

from desk.analysis.animation import Animation
from desk.analysis.gantt import gantt
from desk.analysis.picture import Picture
from desk.analysis.recovery import recovery_chart
from desk.analysis.spans import recovering, spans
from tests.analysis.tuesday import records, tuesday

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


BUSY = [
    {"id": f"p{n}", "kind": kind, "agent": agent, "at": 1020.0 + n * 0.05, "pid": 1, "minute": 20.0}
    for n, (kind, agent) in enumerate((
        ("quarantined", "routing-1"), ("reinstated", "routing-1"), ("fixed", None), ("redriven", None), ("redriven", None),
        ("killed", "stack"), ("replay", "routing-1"), ("replay", "routing-1"),
    ))
]  # fmt: skip
"""Within half a second: a person does five things, the stack dies, a copy replays twice."""


def busy() -> list[dict[str, Any]]:
    return sorted([*records()["events"], *BUSY], key=lambda event: event["at"])


def test_labels_of_one_lane_do_not_lie_on_each_other():
    figure = gantt(busy()).figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = figure.axes[0].texts
    assert {"quarantined\nreinstated\nfixed\nredriven ×2", "replay ×2"} <= {text.get_text() for text in texts}
    boxes = [text.get_window_extent(renderer) for text in texts]
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]


def test_a_stack_that_died_is_on_the_charts_and_its_silence_is_said():
    chart = gantt(busy())
    assert "stack" in [tick.get_text() for tick in chart.figure.axes[0].get_yticklabels()]
    assert [line.get_marker() for line in chart.figure.axes[0].lines].count("x") == 2
    recovery = recovery_chart(recovering(busy()))
    silence = "1 death: nothing on the log says when it was up again"
    assert silence in [text.get_text() for text in recovery.figure.axes[0].texts]


def test_a_step_whose_start_was_the_last_word_of_its_process_ends_with_it():
    def event(at: float, kind: str, pid: int, **fields: Any) -> dict[str, Any]:
        return {"id": f"{at}", "at": at, "kind": kind, "agent": "customer", "pid": pid, **fields}

    work = {"incident": "x", "step": "notify"}
    events = [event(1, "killed", 1), event(1.01, "start", 1, **work), event(9, "agent_up", 2)]
    assert [span.end for span in spans(events).steps] == ["killed"]


def test_words_for_who_does_not_see_a_picture_are_made_from_its_data():
    day = tuesday()
    assert alt(day.drops()) == (
        "22 drops made, 1 failed (hatched). A bar a van. van-1: 11; van-2: 9 and 1 failed; van-3: 2, off the road at 09:20."
    )
    assert "routing-2: 6 steps, killed at 09:07, replay at 09:07; customer: 8 steps" in alt(day.gantt())
    assert "person: fixed at 09:17, redriven at 09:18, approved at 10:29" in alt(day.gantt())
    assert "stack: killed at" in alt(gantt(busy()))
    assert "routing-2: 1 death, up again after 135 ms, the work going on after 235 ms." in alt(day.recovery())
    assert "stack: 1 death, nothing on the log says" in alt(recovery_chart(recovering(busy())))
    assert "van-1: making a drop in North Melbourne, 2 drops made; van-2: driving on its way to" in alt(
        day.map(15)
    )
    assert "van-3: parked in North Melbourne, 2 drops made." in alt(day.map())
    assert "van-1: idle at the depot, 11 drops made" in alt(day.animation())


def alt(picture: Picture | Animation) -> str:
    """The alternative text a notebook keeps."""
    _, metadata = picture._repr_mimebundle_()
    return next(iter(metadata.values()))["alt"]


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
