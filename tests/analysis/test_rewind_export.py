"""The exported folder: every file there, whole, and the same facts in each. And the command that writes it."""

import csv
import json
import re
import subprocess
import sys
from base64 import b64decode
from io import BytesIO

import pytest
from PIL import Image

from desk.analysis.export import ExportError
from desk.analysis.page import facts
from desk.analysis.rewind import Rewind
from desk.control.folder import note
from tests.analysis.tuesday import tuesday


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return tuesday().export(tmp_path_factory.mktemp("export") / "new" / "folder")


@pytest.fixture
def folder(written):
    return written.folder


def test_the_listing_names_what_is_there(written, folder):
    assert sorted(written.files) == sorted(path.name for path in folder.iterdir())
    assert {"gantt.png", "map.svg", "frames.csv", "day.gif", "rewind.html"} <= set(written.files)
    assert "rewind.html" in repr(written) and "slider" in written._repr_html_()


def test_the_tables_can_be_read_back(folder):
    with (folder / "frames.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(tuesday().frames)
    assert sum(int(row["delivered"]) for row in rows[-3:]) == 22


def test_the_events_say_who_asked_for_what_and_how_it_ended(folder):
    with (folder / "events.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["agent"], row["by"]) for row in rows if row["kind"] == "killed"] == [("routing-2", "test")]
    assert [row["by"] for row in rows if row["kind"] == "approved"] == ["person"]
    assert {row["state"] for row in rows if row["kind"] == "step"} == {"done"}


def test_the_animation_has_a_picture_every_two_minutes(folder):
    whole = len(tuesday().minutes) // 2 + 1
    with Image.open(folder / "day.gif") as gif:
        # Pictures in which nothing moves are one picture, shown longer.
        assert whole * 0.8 <= gif.n_frames <= whole
        gif.seek(gif.n_frames - 1)
    assert (folder / "day.gif").stat().st_size < 2_000_000


def test_in_a_notebook_the_animation_is_small_and_says_what_it_shows():
    moving = tuesday().animation()
    data, about = moving._repr_mimebundle_()
    with Image.open(BytesIO(b64decode(data["image/gif"]))) as gif:
        assert gif.n_frames > len(tuesday().minutes) // 5
    assert len(data["image/gif"]) < 700_000
    assert "09:00" in repr(moving) == data["text/plain"]
    assert about["image/gif"]["alt"] == f"{moving!r} {moving.words}"


def test_the_page_needs_nothing_from_anywhere(folder):
    page = (folder / "rewind.html").read_text()
    assert not re.findall(r"(?:src|href)\s*=|https?:|@import|fetch\(", page)
    assert len(page) < 300_000
    assert json.loads(re.search(r"const DAY = (.*);\n", page).group(1))["day"] == "tue"


def test_the_page_shows_the_same_day():
    day = facts("tue", tuesday().minutes, 0)
    last = day["frames"][-1]["vans"]
    assert sum(spot[4] for spot in last.values()) == 22
    assert all(spot[6] == len(day["legs"][van]) for van, spot in last.items())
    states = [state for stop in day["stops"].values() for _, state in stop["states"]]
    assert states.count("delivered") == 22 and states.count("failed") == 1


def test_nothing_to_write_and_nowhere_to_write_it(tmp_path):
    with pytest.raises(ExportError, match="there is nothing to export"):
        Rewind("mon", (), 0).export(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="Cannot write to"):
        tuesday().export(tmp_path / "file")


@pytest.mark.parametrize("left", ["nothing", "a file", "an empty folder", "a support desk"])
def test_the_command_refuses_what_is_no_delivery_desk_before_it_loads_a_chart(left, tmp_path):
    data = tmp_path / "data"
    if left == "a file":
        data.write_text("")
    elif left != "nothing":
        data.mkdir()
    if left == "a support desk":
        note(data, name="demo")
    code = "import sys; from desk.__main__ import main; n = main(); sys.exit(9 if 'matplotlib' in sys.modules else n)"
    command = [sys.executable, "-c", code, "rewind", str(data), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        f"There is no delivery desk's day in {data}: give the folder one was started with, such as .desk/day.\n"
    )
    assert not (tmp_path / "out").exists()
    assert data.exists() == (left != "nothing")
