"""Settings: read once, one clear sentence for a wrong value, and the same after a trip to another process."""

import json
import math
from pathlib import Path

import pytest

from desk.settings import Settings, SettingsError


def test_nothing_set_gives_the_embedded_stack_and_the_mock_writer() -> None:
    settings = Settings.from_env({})
    assert (settings.connection, settings.llm, settings.policy_pause, settings.speed) == (
        "",
        "mock",
        0.0,
        1.0,
    )


def test_every_variable_is_read() -> None:
    settings = Settings.from_env(
        {
            "LASER_CONNECTION_STRING": "iggy:secret@10.0.0.1:8090",
            "DESK_DATA": "elsewhere",
            "DESK_POLICY_PAUSE": "8",
            "DESK_STEP_PAUSE": "2.5",
            "DESK_LLM": "api",
            "DESK_LLM_MODEL": "m",
            "DESK_LLM_TIMEOUT": "3",
            "ANTHROPIC_API_KEY": "k",
            "DESK_SPEED": "max",
            "DESK_SEED": "11",
        }
    )
    assert settings == Settings(
        "iggy:secret@10.0.0.1:8090", Path("elsewhere"), 8.0, 2.5, "api", "m", 3.0, "k", math.inf, 11
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DESK_POLICY_PAUSE", "soon"),
        ("DESK_POLICY_PAUSE", "-1"),
        ("DESK_STEP_PAUSE", "nan"),
        ("DESK_LLM", "gpt"),
        ("DESK_SPEED", "0"),
        ("DESK_SEED", "x"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_it(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({variable: value})
    text = str(caught.value)
    assert variable in text and repr(value) in text and "\n" not in text


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="policy_pause"):
        Settings().having(policy_paws=1)


def test_settings_survive_the_trip_to_another_process() -> None:
    settings = Settings().having(policy_pause=8, speed="max", data="d", api_key="k")
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_secrets_are_not_shown() -> None:
    assert "hunter2" not in repr(Settings().having(api_key="hunter2", connection="iggy:hunter2@h:1"))


def test_a_data_folder_may_begin_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.from_env({"DESK_DATA": "~/desks"}).data == tmp_path / "desks"
