"""A spec survives the trip to another process and hides the password."""

import json
from pathlib import Path

from desk.runtime.spec import Spec
from desk.settings import Settings

SPEC = Spec(
    name="resolver",
    module="desk.support.resolver",
    stream="support-demo",
    events_topic="desk.events",
    folder=Path("somewhere"),
    settings=Settings().having(policy_pause=8, speed="max"),
    switches={"baseline": "1"},
    connection="user:secret@127.0.0.1:1234",
)


def test_survives_json():
    assert Spec.from_json(json.loads(json.dumps(SPEC.to_json()))) == SPEC


def test_password_is_not_shown():
    assert "secret" not in repr(SPEC)
