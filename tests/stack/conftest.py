"""A busy machine is no reason to fail: examples have no deadline here."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient-stack", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient-stack")
