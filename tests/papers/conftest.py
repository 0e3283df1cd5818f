"""How long an example takes is no matter of these tests: machines are busy, and terms are of any size."""

from hypothesis import HealthCheck, settings

settings.register_profile("papers", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("papers")
