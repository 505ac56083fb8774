"""What a test needs of the machine: missing, it skips by name on a laptop and fails in CI."""

import os
from typing import NoReturn

import pytest


def missing(what: str, cure: str) -> NoReturn:
    """End the running test because `what` (Chromium, a package registry) is not here; `cure` says what to do."""
    sentence = f"needs {what}: {cure}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{sentence} (in CI a skip of this kind is a failure)")
    pytest.skip(sentence)
