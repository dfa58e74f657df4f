"""Where `whole.sample_mean_policy` was, until the last preset that imports it from here is made of parts."""

from dynabandit.policies.whole.sample_mean_policy import SLOTS, SampleMeanPolicy, learn, observe, start

__all__ = ["SLOTS", "SampleMeanPolicy", "learn", "observe", "start"]
