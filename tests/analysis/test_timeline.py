"""The timeline as evidence (the same for two runs) and as a chart (lanes, marks, caption)."""

from itertools import pairwise

from matplotlib.figure import Figure

from desk.analysis.lanes import lanes_of, stretched
from desk.analysis.picture import Picture
from desk.analysis.timeline import Timeline
from tests.analysis.samples import killed_in_the_hold


def timeline() -> Timeline:
    return Timeline.of(killed_in_the_hold(), "t-1")


def test_the_table_names_the_death_like_any_other_row():
    table = timeline().table
    assert list(table.columns) == ["process", "event", "text"]
    assert ["resolver", "killed", "killed resolver (SIGKILL)"] in table.values.tolist()


def test_two_runs_with_other_pids_and_times_read_the_same():
    later = [
        {**e, "id": f"again-{e['id']}", "at": e["at"] * 1.1 + 77, "pid": e["pid"] and e["pid"] + 4000}
        for e in killed_in_the_hold()
    ]
    for e in later:
        e["text"] = e["text"].replace("pid 2", "pid 402")
    again = Timeline.of(later, "t-1")
    assert repr(again) == repr(timeline())
    assert again._repr_html_() == timeline()._repr_html_()


def test_a_dollar_in_a_text_is_not_typeset_as_a_formula():
    assert "mathjax_ignore" in timeline()._repr_html_()


def test_a_lane_for_each_process_in_the_order_they_took_part():
    lanes, places, seconds = lanes_of(timeline().events)
    assert [lane.label for lane in lanes] == [
        "person",
        "triage",
        "resolver",
        "resolver, process 2",
        "billing",
    ]
    assert places == sorted(places)
    assert seconds[0] == 0


def test_time_is_stretched_but_never_reordered():
    places = stretched([0, 0, 0.001, 8.0])
    steps = [b - a for a, b in pairwise(places)]
    assert steps[0] == 1
    assert steps[2] > steps[1] >= 1
    assert stretched([]) == []


def test_the_caption_of_several_deaths_speaks_of_each():
    again = {
        **next(e for e in killed_in_the_hold() if e["kind"] == "killed" and e["pid"] == 20),
        "id": "again",
        "pid": 10,
    }
    held = [e for e in killed_in_the_hold() if e["kind"] != "done"]
    two = Timeline.of([*held[:9], again, *held[9:]], "t-1")
    assert (
        two.deaths > 1
        and repr(two.plot()) == "Each cross is a death, each ring the same ticket in the next process."
    )
    plain = Timeline.of([e for e in [*held[:9], again, *held[9:]] if e["kind"] != "replay"], "t-1")
    assert repr(plain.plot()) == "Each cross is a process that died with the ticket in its hands."


def test_words_for_who_does_not_see_the_plot_name_lanes_and_deaths():
    assert timeline().plot().words == (
        "5 lanes from the top: person; triage; resolver; resolver, process 2; billing. 15 events in 5.04 s: "
        "holding in the lane of resolver at 0.03 s; killed in the lane of resolver at 2.20 s; "
        "replay in the lane of resolver, process 2 at 2.25 s; approved in the lane of person at 5.00 s."
    )


def test_the_plot_marks_the_death_the_replay_the_hold_and_the_decision():
    picture = timeline().plot()
    (axes,) = picture.figure.axes
    marks = {line.get_marker() for line in axes.lines}
    assert {"x", "D"} <= marks
    assert [bar.get_hatch() for bar in axes.patches] == ["////"]
    open_rings = [line for line in axes.lines if line.get_marker() == "o" and line.get_markersize() > 10]
    assert [line.get_markerfacecolor() for line in open_rings] == ["white"]
    assert [tick.get_text() for tick in axes.get_yticklabels()][2:4] == ["resolver", "resolver, process 2"]


def test_a_picture_is_shown_with_its_caption_as_text_and_as_the_alternative(tmp_path):
    picture = timeline().plot()
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == "The cross and the ring are the same ticket in two processes."
    assert metadata["image/png"]["alt"] == f"{data['text/plain']} {picture.words}"
    assert picture.save(tmp_path / "timeline.svg").stat().st_size > 1000


def test_a_ticket_nobody_has_heard_of_is_an_empty_chart_with_a_sentence():
    picture = Timeline("t-9", ()).plot()
    assert isinstance(picture, Picture)
    assert isinstance(picture.figure, Figure)
    assert repr(picture) == "Nothing about t-9 is on the log yet."
