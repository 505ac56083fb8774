"""A busy machine is no reason to fail: examples have no deadline here."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
