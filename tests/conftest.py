"""What all tests share: generated cases that are the same on every run, and none that races a clock."""

from hypothesis import HealthCheck, settings

from laws import INTERPRETED

settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25 if INTERPRETED else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")
