"""A desk's folder: only what a desk made is ever emptied, and what cannot be used is said in one sentence."""

from pathlib import Path

import pytest

from desk.control import folder as folders
from desk.control.errors import DeskError
from desk.control.reset import reset


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "a/b", "/etc", "a\0b", 5, None])
def test_a_desks_folder_has_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(DeskError, match="has a plain name such as demo"):
        folders.place(tmp_path, name)


def test_names_may_be_odd_in_other_ways(tmp_path: Path) -> None:
    for name in ("demo", "mit Leerzeichen", "Größe 日本"):
        folders.fresh(folders.place(tmp_path, name))
        assert folders.is_desk(tmp_path / name)


def test_a_folder_with_somebodys_files_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(DeskError, match="files that are not a desk's"):
        folders.fresh(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_desks_own_folder_is_emptied(tmp_path: Path) -> None:
    folders.fresh(tmp_path)
    (tmp_path / "bank.sqlite").write_text("")
    (tmp_path / "logs").mkdir()
    folders.fresh(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["owner.lock"]


@pytest.mark.parametrize("below", ["file/desk", f"{'a' * 300}/desk"])
def test_a_folder_that_cannot_be_made_gets_one_sentence(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeskError, match=r"cannot be used: .*Choose another DESK_DATA") as told:
        folders.fresh(tmp_path / below)
    assert "\n" not in str(told.value)


def test_reset_deletes_desks_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_DATA", str(tmp_path))
    folders.fresh(tmp_path / "demo")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("")
    assert reset([]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
    assert reset(["photos"]) == 1
    assert (tmp_path / "photos" / "cat.png").exists()
