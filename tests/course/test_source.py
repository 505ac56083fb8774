"""show reads the file that runs, whole and exactly, and says what there is when the name is wrong."""

import inspect

import pytest

from desk import settings
from desk.course.source import ShowError, show


def test_a_function_is_shown_as_it_stands_in_its_file():
    source = show("settings", "Settings.from_env")
    assert source.where == "desk/settings.py"
    assert source.text.startswith("@classmethod\ndef from_env(")
    assert inspect.getsource(settings.Settings.from_env).split() == source.text.split()


def test_its_text_form_is_the_code_and_its_html_keeps_dollars_alone():
    source = show("settings", "SettingsError")
    assert repr(source).splitlines()[0] == "# desk/settings.py"
    assert "mathjax_ignore" in source._repr_html_()
    assert "SettingsError" in source._repr_html_()


def test_a_whole_module():
    assert show("settings").text.startswith('"""Every DESK_*')


@pytest.mark.parametrize(
    ("module", "name", "says"),
    [
        ("support.nobody", "", "There is no module desk.support.nobody"),
        ("nowhere.nobody", "", "There is no module desk.nowhere.nobody"),
        ("settings", "Setings", "it has SettingsError"),
    ],
)
def test_a_name_that_is_not_there_gets_one_sentence(module, name, says):
    with pytest.raises(ShowError, match=says):
        show(module, name)
