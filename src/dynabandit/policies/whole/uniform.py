"""Uniform: a random arm at every step."""

from dataclasses import dataclass

from dynabandit.policies.base import PolicyFunctions
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import BOUNDED, NORMAL


@dataclass(frozen=True, kw_only=True)
class Uniform(SampleMeanPolicy):
    """Play a random arm, each with the same probability. A reference: every other policy should have less regret.

    Notes
    -----
    Cost per step: O(log K).

    References
    ----------
    None; it is the usual lower reference of experiments.
    """

    name = "uniform"
    rewards = NORMAL
    live_rewards = BOUNDED
    slots = sample_mean_policy.SLOTS
    functions = PolicyFunctions(start=sample_mean_policy.start, learn=sample_mean_policy.learn, static_index=True)
