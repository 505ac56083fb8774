"""The notebook's picture and table of the rivals say what the committed measurements say."""

import json
from pathlib import Path

import pytest

from bench.rivals import results
from desk.analysis import rivals
from desk.analysis.rivals import rivals_plot, rivals_table
from desk.control.errors import DeskError


def test_the_table_has_what_the_benchmarks_own_reader_counts() -> None:
    _, systems = results.read(rivals.FILE)
    table = rivals_table().table
    assert list(table.index) == list(systems)
    for name, system in systems.items():
        row, counts = table.loc[name], system.figures()["counts"]
        assert float(row["first line"]) == pytest.approx(system.first_line, rel=0.02)
        assert (row["tickets"], row["paid"], row["lookups"]) == (
            counts["tickets"],
            counts["paid"],
            counts["lookups"],
        )
        assert row["lines"] == system.lines.durability


def test_the_caption_quotes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = json.loads(rivals.FILE.read_text("utf-8"))
    measured["systems"]["Laser Desk"]["figures"]["first_line"] = 0.7654
    other = tmp_path / "rivals.json"
    other.write_text(json.dumps(measured))
    monkeypatch.setattr(rivals, "FILE", other)
    assert "Laser Desk after 0.765 s" in rivals_plot().caption


def test_a_system_that_never_closed_is_drawn_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = json.loads(rivals.FILE.read_text("utf-8"))
    plain = measured["systems"]["plain"]
    plain["chaos"][0]["after"] = plain["a"][0]["closed"] = None
    plain["figures"] |= {"closed_if_held": None, "slowest_chaos": None}
    other = tmp_path / "rivals.json"
    other.write_text(json.dumps(measured))
    monkeypatch.setattr(rivals, "FILE", other)
    rivals_plot().save(tmp_path / "rivals.png")
    assert rivals_table().table.loc["plain", "20 tickets closed"] == "never"


def test_without_the_file_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "FILE", tmp_path / "none.json")
    with pytest.raises(DeskError, match="are not there"):
        rivals_table()
