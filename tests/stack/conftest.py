"""A busy machine is no reason to fail: examples have no deadline here. And an engine whose views equal a rebuild."""

import pytest
from hypothesis import HealthCheck, settings

from tests.stack.banding import Bench
from tests.stack.viewing import Views

settings.register_profile("patient-stack", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient-stack")


@pytest.fixture
def views(tmp_path):
    """Views of an engine of its own; what they hold at the end is what a rebuild gives."""
    bench = Bench(tmp_path)
    views = Views(bench)
    yield views
    views.assert_rebuilds()
    bench.close()
